#!/bin/sh
# An operator in shell: every ConfigMap with the label copy=wanted gets a copy, named after it. kubectl takes the address
# of the API server and the namespace from KUBECONFIG.
echo "process $$"
while :; do
	# The watch begins with all existing ConfigMaps. It ends when its connection breaks.
	kubectl get configmaps --selector=copy=wanted --watch --output=name | while read -r original; do
		copy="${original#configmap/}-copy"
		kubectl get configmap "$copy" --output=name --ignore-not-found | grep -q . ||
			kubectl create configmap "$copy" --from-literal="original=$original"
	done
	sleep 1
done
