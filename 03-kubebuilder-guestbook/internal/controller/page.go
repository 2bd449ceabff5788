//workshop:given 3.3a

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// The volumes of a pod, and where they are mounted. The container's root file system is read-only.
const (
	settingsVolume = "settings"
	pagesVolume    = "pages"
	scratchVolume  = "scratch"

	settingsPath = "/etc/nginx/templates"  // the start script reads its templates here
	pagesPath    = "/usr/share/nginx/html" // the start script writes the pages here
	scratchPath  = "/tmp"                  // nginx writes its own files here
)

func setVolumes(pod *corev1.PodSpec, guestbook *webappv1.Guestbook) {
	volume := func(name string) *corev1.VolumeSource {
		return &named(&pod.Volumes, name, func(v *corev1.Volume) *string { return &v.Name }).VolumeSource
	}
	*volume(settingsVolume) = corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: guestbook.Spec.ConfigMapName},
		DefaultMode:          new(int32(0o644)),
	}}
	*volume(pagesVolume) = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("16Mi"))}}
	*volume(scratchVolume) = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("64Mi"))}}
}

func setContainer(container *corev1.Container, guestbook *webappv1.Guestbook) {
	container.Image = image
	container.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	container.SecurityContext.AllowPrivilegeEscalation = new(false)
	container.SecurityContext.ReadOnlyRootFilesystem = new(true)
	container.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}

	port := named(&container.Ports, portName, func(p *corev1.ContainerPort) *string { return &p.Name })
	port.ContainerPort, port.Protocol = 8080, corev1.ProtocolTCP
	if container.ReadinessProbe == nil {
		container.ReadinessProbe = &corev1.Probe{}
	}
	container.ReadinessProbe.ProbeHandler = corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString(portName), Scheme: corev1.URISchemeHTTP},
	}
	variable := func(name, value string) {
		*named(&container.Env, name, func(e *corev1.EnvVar) *string { return &e.Name }) = corev1.EnvVar{Name: name, Value: value}
	}
	variable("GUESTBOOK_ALIAS", string(guestbook.Spec.Alias))
	variable("NGINX_ENVSUBST_OUTPUT_DIR", pagesPath)
	mount := func(volume, path string, readOnly bool) {
		mounted := named(&container.VolumeMounts, volume, func(m *corev1.VolumeMount) *string { return &m.Name })
		mounted.MountPath, mounted.ReadOnly = path, readOnly
	}
	mount(settingsVolume, settingsPath, true)
	mount(pagesVolume, pagesPath, false)
	mount(scratchVolume, scratchPath, false)
}
