#!/bin/sh
# An operator in shell: each Greeting gets a ConfigMap with its text. kubectl takes the address of the API server and the
# namespace from KUBECONFIG.
while :; do
	kubectl get greetings --output='go-template={{range .items}}{{.metadata.name}} {{.metadata.uid}} {{.metadata.generation}} {{or .status.observedGeneration 0}} {{or .status.phase "New"}} {{.spec.text}}{{"\n"}}{{end}}' |
	while read -r name uid generation observed was text; do
		phase=Greeted
		found=$(kubectl get configmap "$name-greeting" --ignore-not-found --output='go-template={{.data.text}}')
		if [ "$found" != "$text" ]; then
			kubectl apply --server-side --force-conflicts --field-manager=greeter --filename=- <<-END || phase=Refused
				apiVersion: v1
				kind: ConfigMap
				metadata:
				  name: $name-greeting
				  ownerReferences:
				  - {apiVersion: test.example.com/v1, kind: Greeting, name: $name, uid: $uid, controller: true}
				data:
				  text: "$text"
			END
		fi
		if [ "$observed $was" != "$generation $phase" ]; then
			kubectl patch greeting "$name" --subresource=status --type=merge \
				--patch="{\"status\":{\"phase\":\"$phase\",\"observedGeneration\":$generation}}"
		fi
	done
	sleep 0.5
done
