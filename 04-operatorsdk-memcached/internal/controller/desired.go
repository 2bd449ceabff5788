package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

const (
	// DefaultImage is the image of Memcacheds whose spec names none, unless MEMCACHED_IMAGE overrides it.
	DefaultImage = "docker.io/library/memcached:1.6.39-alpine"
	// containerName is the name of the memcached container in each pod.
	containerName = "memcached"
	// portName is the name of memcached's port, in the pods and in the Service.
	portName = "memcached"
	// user is the ID of the official image's user. The image gives only the user's name, and
	// from a name, the kubelet can't tell whether the user is root.
	user = 11211

	// revisionAnnotation holds the revision that the pods are created from. The pod template and each pod have it.
	revisionAnnotation = "cache.example.com/revision"

	instanceLabel  = "app.kubernetes.io/instance"
	managedByLabel = "app.kubernetes.io/managed-by"
)

// selectorLabels returns the labels that select the pods of a Memcached. A Deployment's
// selector is immutable, so they contain nothing that can change, such as a version.
func selectorLabels(memcached *cachev1alpha1.Memcached) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "memcached",
		instanceLabel:            memcached.Name,
		managedByLabel:           controllerName,
	}
}

// setDeployment sets the operator's fields in the Deployment.
func setDeployment(deployment *appsv1.Deployment, memcached *cachev1alpha1.Memcached, image string) {
	deployment.Labels = labels.Merge(deployment.Labels, selectorLabels(memcached))
	deployment.Spec.Replicas = new(memcached.Spec.Size)
	if deployment.Spec.Selector == nil {
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(memcached)}
	}
	setTemplate(&deployment.Spec.Template, memcached, image)
	metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, revisionAnnotation, newRevision(memcached, image)) //workshop:step 4.9a
}

// setTemplate sets the operator's fields in the pod template.
func setTemplate(template *corev1.PodTemplateSpec, memcached *cachev1alpha1.Memcached, image string) {
	template.Labels = labels.Merge(template.Labels, selectorLabels(memcached))
	pod := &template.Spec
	//workshop:step 4.9c
	pod.AutomountServiceAccountToken = new(false) // the pods never call the API server
	//workshop:step 4.9c
	// The pods meet the strictest of Kubernetes' pod security standards, "restricted".
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	//workshop:step 4.9c
	pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.RunAsUser = new(true), new(int64(user))
	//workshop:step 4.9c
	pod.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	setContainer(named(&pod.Containers, containerName, func(c *corev1.Container) *string { return &c.Name }), memcached, image)
}

// newRevision returns a hash, 16 hexadecimal digits, of the image and of the spec without its size.
//
// It does not hash the pod template: Kubernetes' Go types change from release to
// release, so with a hash of the template, a new version of k8s.io/api could replace the
// pods of every Memcached.
//
//workshop:step 4.9a
func newRevision(memcached *cachev1alpha1.Memcached, image string) string {
	spec := memcached.Spec
	spec.Size, spec.Image = 0, image // scaling must not replace pods
	content, _ := json.Marshal(spec) // numbers and strings can always be encoded
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

//workshop:step 4.9b
func setContainer(container *corev1.Container, memcached *cachev1alpha1.Memcached, image string) {
	container.Image = image
	// By default, the API server derives the policy from the first image's tag, and keeps it when the image changes.
	container.ImagePullPolicy = corev1.PullIfNotPresent
	//workshop:between 4.9b 4.14c container.Args = wantedArguments(memcached)
	//workshop:step 4.14c
	container.Args = replaceArguments(container.Args, wantedArguments(memcached))
	container.Resources = resourcesOf(memcached) //workshop:step 4.9c
	//workshop:step 4.9c
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	container.SecurityContext.AllowPrivilegeEscalation = new(false) //workshop:step 4.9c
	container.SecurityContext.ReadOnlyRootFilesystem = new(true)    //workshop:step 4.9c
	//workshop:step 4.9c
	container.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}

	port := named(&container.Ports, portName, func(p *corev1.ContainerPort) *string { return &p.Name })
	port.ContainerPort, port.Protocol = memcached.Spec.ContainerPort, corev1.ProtocolTCP
	if container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{}
	}
	container.ReadinessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}}
}

// wantedArguments returns the arguments that a Memcached asks for.
//
//workshop:step 4.9b
func wantedArguments(memcached *cachev1alpha1.Memcached) []string {
	wanted := []string{
		fmt.Sprintf("--port=%d", memcached.Spec.ContainerPort),
		fmt.Sprintf("--memory-limit=%d", memcached.Spec.MemoryMegabytes),
	}
	//workshop:step 4.14b
	if limit := memcached.Spec.MaxConnections; limit > 0 {
		wanted = append(wanted, fmt.Sprintf("--conn-limit=%d", limit))
	}
	return wanted
}

// replaceArguments returns the wanted arguments, followed by the existing ones that others have added. Others usually
// append theirs, so the order stays the same; a new order would replace the pods. The call overwrites present.
//
//workshop:step 4.14c
func replaceArguments(present, wanted []string) []string {
	isOurs := func(argument string) bool {
		flag, _, hasValue := strings.Cut(argument, "=")
		return hasValue && slices.Contains([]string{"--port", "--memory-limit", "--conn-limit"}, flag)
	}
	return slices.Concat(wanted, slices.DeleteFunc(present, isOurs))
}

// resourcesOf allows for a quarter more memory than the items may fill, plus 32 MiB.
// The request for memory equals the limit, because a cache fills all the memory that it may use.
//
//workshop:step 4.9c
func resourcesOf(memcached *cachev1alpha1.Memcached) corev1.ResourceRequirements {
	items := int64(memcached.Spec.MemoryMegabytes) << 20
	memory := *resource.NewQuantity(items+items/4+32<<20, resource.BinarySI)
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: memory},
	}
}

// setService sets the operator's fields in the Service. The Service is headless, because clients choose a pod for each
// key: its name resolves to the addresses of all ready pods.
//
//workshop:step 4.9e
func setService(service *corev1.Service, memcached *cachev1alpha1.Memcached) {
	service.Labels = labels.Merge(service.Labels, selectorLabels(memcached))
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Selector = selectorLabels(memcached)
	port := named(&service.Spec.Ports, portName, func(p *corev1.ServicePort) *string { return &p.Name })
	port.Port, port.TargetPort, port.Protocol = memcached.Spec.ContainerPort, intstr.FromString(portName), corev1.ProtocolTCP
}

// setBudget sets the operator's fields in the PodDisruptionBudget: one pod may be evicted at a time. A pod that isn't
// ready may always be evicted; by default, if all pods crashed again and again, they would block every drain of their
// nodes.
//
//workshop:step 4.10
func setBudget(budget *policyv1.PodDisruptionBudget, memcached *cachev1alpha1.Memcached) {
	budget.Labels = labels.Merge(budget.Labels, selectorLabels(memcached))
	budget.Spec.MinAvailable, budget.Spec.MaxUnavailable = nil, new(intstr.FromInt32(1))
	budget.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: selectorLabels(memcached)}
}

// named returns the list element with the given name. If there is none, it appends
// one, and leaves the elements that others have added alone.
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
