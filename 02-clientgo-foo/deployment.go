package main

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	examplev1alpha1 "example.com/operator-workshop/02-clientgo-foo/pkg/apis/example/v1alpha1"
)

// containerName is the name of the one container that a Foo asks for.
const containerName = "foo"

// fooKind is the kind in owner references to Foos.
var fooKind = examplev1alpha1.SchemeGroupVersion.WithKind("Foo")

// selectorLabels returns the labels that select the pods of a Foo's Deployment. A selector is immutable, so it must
// contain only values that never change. The Deployment's name can't change, and is unique in the namespace.
//
//workshop:step 2.9a
func selectorLabels(foo *examplev1alpha1.Foo) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     "foo",
		"app.kubernetes.io/instance": foo.Spec.DeploymentName,
	}
}

// newDeployment returns the desired Deployment of a Foo.
//
//workshop:step 2.9a
func newDeployment(foo *examplev1alpha1.Foo) *appsv1.Deployment {
	podLabels := labels.Merge(selectorLabels(foo), labels.Set{"app.kubernetes.io/managed-by": programName})
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       foo.Namespace,
			Name:            foo.Spec.DeploymentName,
			Labels:          podLabels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(foo, fooKind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(foo.Spec.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: selectorLabels(foo)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(podLabels)},
				Spec:       newPodSpec(foo),
			},
		},
	}
}

// newPodSpec returns the spec of a Foo's pods. It meets the strictest of Kubernetes' pod security
// standards, "restricted".
//
//workshop:step 2.9b
func newPodSpec(foo *examplev1alpha1.Foo) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false), // the pods never call the API server
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:  containerName,
			Image: foo.Spec.Image,
			//workshop:step 2.15b
			Env: wantedVariables(foo),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: corev1.ResourceRequirements{
				Requests: resources("10m", "32Mi"),
				Limits:   resources("500m", "128Mi"),
			},
		}},
	}
}

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory),
	}
}

// newPatch returns a strategic merge patch with the controller's fields that differ from the desired Deployment, or nil
// if none differs.
//
// The patch keeps annotations, sidecars and everything else that others have set, even if the cache does not show it
// yet. An update would send the whole cached object, and while the cache is stale, the API server would refuse it.
// Server-side apply would compare on the server, at the cost of a request for each sync, and would adopt an object
// that the cache does not show. The UID in the patch makes the API server refuse it if the Deployment has since been
// deleted and recreated.
//
//workshop:step 2.10b
func newPatch(found, wanted *appsv1.Deployment) ([]byte, error) {
	changed := found.DeepCopy()
	setOwnedFields(changed, wanted)
	if equality.Semantic.DeepEqual(found, changed) {
		return nil, nil
	}
	base := found.DeepCopy()
	base.UID = "" // so that the UID counts as a difference
	before, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("encode Deployment %s: %w", found.Name, err)
	}
	after, err := json.Marshal(changed)
	if err != nil {
		return nil, fmt.Errorf("encode Deployment %s: %w", found.Name, err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, appsv1.Deployment{})
	if err != nil {
		return nil, fmt.Errorf("compute the patch of Deployment %s: %w", found.Name, err)
	}
	return patch, nil
}

// setOwnedFields copies into a Deployment the fields that newDeployment sets, except the selector, which is immutable,
// and the owner reference, which findBlocker checks.
//
//workshop:step 2.10a
func setOwnedFields(deployment, wanted *appsv1.Deployment) {
	deployment.Labels = labels.Merge(deployment.Labels, wanted.Labels)
	deployment.Spec.Replicas = wanted.Spec.Replicas
	template := &deployment.Spec.Template
	template.Labels = labels.Merge(template.Labels, wanted.Spec.Template.Labels)
	setOwnedPodFields(&template.Spec, &wanted.Spec.Template.Spec)
}

//workshop:step 2.10a
func setOwnedPodFields(pod, wanted *corev1.PodSpec) {
	pod.AutomountServiceAccountToken = wanted.AutomountServiceAccountToken
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.SecurityContext.RunAsNonRoot = wanted.SecurityContext.RunAsNonRoot
	pod.SecurityContext.SeccompProfile = wanted.SecurityContext.SeccompProfile

	container := containerOf(pod)
	container.Image = wanted.Containers[0].Image
	container.Resources = wanted.Containers[0].Resources
	//workshop:between 2.15b 2.15c container.Env = wanted.Containers[0].Env
	//workshop:step 2.15c
	container.Env = replaceMessage(container.Env, wanted.Containers[0].Env)
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	container.SecurityContext.AllowPrivilegeEscalation = wanted.Containers[0].SecurityContext.AllowPrivilegeEscalation
	container.SecurityContext.Capabilities = wanted.Containers[0].SecurityContext.Capabilities
}

// containerOf returns the Foo's container in the pod, and appends one if there is none.
//
//workshop:step 2.10a
func containerOf(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == containerName {
			return &pod.Containers[i]
		}
	}
	pod.Containers = append(pod.Containers, corev1.Container{Name: containerName})
	return &pod.Containers[len(pod.Containers)-1]
}
