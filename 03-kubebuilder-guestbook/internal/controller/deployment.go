package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

const (
	// image runs nginx as a non-root user. Its start script renders templates.
	image = "nginxinc/nginx-unprivileged:1.29.1-alpine"
	// containerName is the name of the container that serves the page.
	containerName = "page"
	// portName is the name of the page's port: 8080 in the container, 80 in the Service.
	portName = "http"

	instanceLabel  = "app.kubernetes.io/instance"
	managedByLabel = "app.kubernetes.io/managed-by"
	// revisionAnnotation holds the revision that the pods are created from. The pod template and each pod have it.
	revisionAnnotation = "webapp.my.domain/revision"
)

// selectorLabels returns the labels that select a Guestbook's pods. A Deployment's
// selector is immutable, so they must not depend on anything that can change.
//
//workshop:step 3.5c
func selectorLabels(guestbook *webappv1.Guestbook) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "guestbook",
		instanceLabel:            guestbook.Name,
		managedByLabel:           controllerName,
	}
}

// newRevision returns the revision that the pods are created from: the Guestbook's UID, and a digest
// of the image, the settings, and the spec without the size. Because of the UID, pods left over from
// a deleted Guestbook of the same name count as old.
//
// The digest does not cover the pod template: Kubernetes' Go types change from release to
// release, so with a digest of the template, a new version of k8s.io/api could replace every
// Guestbook's pods.
//
//workshop:step 3.5b
func newRevision(guestbook *webappv1.Guestbook, settings string) string {
	spec := guestbook.Spec
	spec.Size = 0 // scaling replaces no pod
	return fmt.Sprintf("%s.%s", guestbook.UID, digest(spec, image, settings))
}

func revisionOf(pod *corev1.Pod) string { return pod.Annotations[revisionAnnotation] }

// setDeployment sets the Deployment's fields that the controller owns. A new
// revision makes the Deployment controller replace the pods, a few at a time.
//
//workshop:step 3.5c
func setDeployment(deployment *appsv1.Deployment, guestbook *webappv1.Guestbook, revision string) {
	deployment.Labels = labels.Merge(deployment.Labels, selectorLabels(guestbook))
	deployment.Spec.Replicas = new(guestbook.Spec.Size)
	if deployment.Spec.Selector == nil {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(guestbook)}
	}
	setTemplate(&deployment.Spec.Template, guestbook)
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, revisionAnnotation, revision)
}

// setTemplate sets the template's fields that the controller owns. The pods meet the strictest of Kubernetes' pod
// security standards, "restricted".
//
//workshop:step 3.5d
func setTemplate(template *corev1.PodTemplateSpec, guestbook *webappv1.Guestbook) {
	template.Labels = labels.Merge(template.Labels, selectorLabels(guestbook))
	pod := &template.Spec
	pod.AutomountServiceAccountToken = new(false) // the pods never call the API server
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod.SecurityContext.RunAsNonRoot = new(true)
	pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	setVolumes(pod, guestbook)
	setContainer(named(&pod.Containers, containerName, func(c *corev1.Container) *string { return &c.Name }), guestbook)
}

// setService sets the Service's fields that the controller owns, so that port 80 forwards to all ready pods.
//
//workshop:step 3.5j
func setService(service *corev1.Service, guestbook *webappv1.Guestbook) {
	service.Labels = labels.Merge(service.Labels, selectorLabels(guestbook))
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.Selector = selectorLabels(guestbook)
	port := named(&service.Spec.Ports, portName, func(p *corev1.ServicePort) *string { return &p.Name })
	port.Port, port.TargetPort, port.Protocol = 80, intstr.FromString(portName), corev1.ProtocolTCP
}

// named returns the element with the given name, and first appends one if the list has
// none. Elements that others have added stay.
//
//workshop:step 3.5d
func named[T any](list *[]T, name string, nameOf func(*T) *string) *T {
	for i := range *list {
		if *nameOf(&(*list)[i]) == name {
			return &(*list)[i]
		}
	}
	var added T
	*nameOf(&added) = name
	*list = append(*list, added)
	return &(*list)[len(*list)-1]
}
