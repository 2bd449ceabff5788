//workshop:given 3.3a

package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	webappv1 "example.com/operator-workshop/03-kubebuilder-guestbook/api/v1"
)

// storedGuestbook returns a Guestbook as the API server returns it.
func storedGuestbook() *webappv1.Guestbook {
	return &webappv1.Guestbook{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-of-web", Generation: 3, ResourceVersion: "30"},
		Spec:       webappv1.GuestbookSpec{Size: 2, ConfigMapName: "page-settings", Alias: webappv1.AliasPhone},
	}
}

// newDeployment returns the Guestbook's Deployment with the fields that setDeployment sets, and no owner.
func newDeployment(guestbook *webappv1.Guestbook) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: guestbook.Namespace, Name: guestbook.Name}}
	setDeployment(deployment, guestbook, "present")
	return deployment
}

func newService(guestbook *webappv1.Guestbook) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: guestbook.Namespace, Name: guestbook.Name}}
	setService(service, guestbook)
	return service
}

func TestSetDeployment(t *testing.T) {
	g := NewWithT(t)
	guestbook := storedGuestbook()
	deployment := newDeployment(guestbook)
	g.Expect(guestbook).To(Equal(storedGuestbook()), "setDeployment must not change the Guestbook")

	wantLabels := map[string]string{"app.kubernetes.io/name": "guestbook", instanceLabel: "web", managedByLabel: controllerName}
	g.Expect(deployment.Labels).To(Equal(wantLabels), "see setDeployment in deployment.go")
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(deployment.Spec.Selector).To(HaveValue(Equal(metav1.LabelSelector{MatchLabels: wantLabels})))
	g.Expect(deployment.Spec.Template.Annotations).To(Equal(map[string]string{revisionAnnotation: "present"}))

	guestbook.Spec.Size = 9
	deployment.Labels["extra"] = "label"
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "the Deployment must not share memory with the Guestbook")
	g.Expect(deployment.Spec.Selector.MatchLabels).NotTo(HaveKey("extra"), "the labels and the selector must not share memory")

	found := newDeployment(storedGuestbook())
	found.Labels["team"], found.Spec.Selector.MatchLabels = "shop", map[string]string{instanceLabel: "web"}
	want := found.DeepCopy()
	found.Spec.Replicas = nil
	setDeployment(found, storedGuestbook(), "present")
	g.Expect(found).To(Equal(want), "only the replicas must change: someone else's label and an older version's selector stay, see setDeployment in deployment.go")
}

func TestSetTemplate(t *testing.T) {
	g := NewWithT(t)
	deployment := newDeployment(storedGuestbook())
	template := deployment.Spec.Template
	g.Expect(template.Labels).To(Equal(selectorLabels(storedGuestbook())), "the selector must match the pods, see setTemplate in deployment.go")
	g.Expect(template.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()), "the pods never call the API server, so AutomountServiceAccountToken must be false, see setTemplate in deployment.go")
	g.Expect(template.Spec.SecurityContext).To(HaveValue(And(
		HaveField("RunAsNonRoot", HaveValue(BeTrue())),
		HaveField("SeccompProfile", HaveValue(HaveField("Type", corev1.SeccompProfileTypeRuntimeDefault))),
	)), `the pod security standard "restricted" requires this`)
	g.Expect(template.Spec.Volumes).To(HaveLen(3))
	g.Expect(template.Spec.Volumes[0].ConfigMap.Name).To(Equal("page-settings"))
	g.Expect(template.Spec.Containers).To(HaveLen(1))
	container := template.Spec.Containers[0]
	g.Expect(container.Env).To(ContainElement(corev1.EnvVar{Name: "GUESTBOOK_ALIAS", Value: "Phone"}))
	for _, mounted := range container.VolumeMounts {
		g.Expect(template.Spec.Volumes).To(ContainElement(HaveField("Name", mounted.Name)), "the API server refuses a mount without its volume")
	}

	deployment.Labels["extra"] = "label"
	g.Expect(template.Labels).NotTo(HaveKey("extra"), "the two sets of labels must not share memory")
}

func TestSetDeploymentLeavesTheRest(t *testing.T) {
	tests := map[string]func(*appsv1.Deployment){
		"nothing was changed": func(*appsv1.Deployment) {},
		"labels and annotations were added": func(deployment *appsv1.Deployment) {
			deployment.Labels["team"], deployment.Annotations = "shop", map[string]string{"note": "of a user"}
			deployment.Spec.Template.Labels["team"] = "shop"
			deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
		},
		"an older version has set the selector": func(deployment *appsv1.Deployment) {
			deployment.Spec.Selector.MatchLabels = map[string]string{instanceLabel: "web"}
		},
		"a sidecar was added before the container": func(deployment *appsv1.Deployment) {
			pod := &deployment.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "sidecar:1"}}, pod.Containers...)
			pod.Volumes = append([]corev1.Volume{{Name: "cache"}}, pod.Volumes...)
		},
		"the container has additional settings": func(deployment *appsv1.Deployment) {
			container := &deployment.Spec.Template.Spec.Containers[0]
			container.Env = append(container.Env, corev1.EnvVar{Name: "MODE", Value: "test"})
			container.Ports = append(container.Ports, corev1.ContainerPort{Name: "debug", ContainerPort: 9000})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "cache", MountPath: "/cache"})
			container.ReadinessProbe.PeriodSeconds = 30
			container.SecurityContext.RunAsUser = new(int64(101))
			deployment.Spec.Template.Spec.SecurityContext.FSGroup = new(int64(101))
		},
		"the rollout was made slower": func(deployment *appsv1.Deployment) {
			deployment.Spec.MinReadySeconds, deployment.Spec.ProgressDeadlineSeconds = 5, new(int32(900))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedGuestbook())
			change(deployment)
			before := deployment.DeepCopy()
			setDeployment(deployment, storedGuestbook(), "present")
			g.Expect(deployment).To(Equal(before), "fields that others have set must stay, and fields that are right must not change")
		})
	}
}

func TestSetDeploymentUndoes(t *testing.T) {
	container := func(change func(*corev1.Container)) func(*appsv1.Deployment) {
		return func(deployment *appsv1.Deployment) { change(&deployment.Spec.Template.Spec.Containers[0]) }
	}
	pod := func(change func(*corev1.PodSpec)) func(*appsv1.Deployment) {
		return func(deployment *appsv1.Deployment) { change(&deployment.Spec.Template.Spec) }
	}
	tests := map[string]func(*appsv1.Deployment){
		"other replicas": func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = nil },
		"another revision": func(deployment *appsv1.Deployment) {
			deployment.Spec.Template.Annotations[revisionAnnotation] = "former"
		},
		"a missing label":             func(deployment *appsv1.Deployment) { delete(deployment.Labels, managedByLabel) },
		"a changed label of the pods": func(deployment *appsv1.Deployment) { deployment.Spec.Template.Labels[instanceLabel] = "other" },
		"another image":               container(func(c *corev1.Container) { c.Image = "other:1" }),
		"another alias":               container(func(c *corev1.Container) { c.Env[0].Value = "Name" }),
		"a variable from elsewhere": container(func(c *corev1.Container) {
			c.Env[0] = corev1.EnvVar{Name: c.Env[0].Name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
		}),
		"more memory": container(func(c *corev1.Container) {
			c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
		}),
		"another port":                     container(func(c *corev1.Container) { c.Ports[0].ContainerPort = 80 }),
		"another probe":                    container(func(c *corev1.Container) { c.ReadinessProbe.HTTPGet.Path = "/other" }),
		"no probe":                         container(func(c *corev1.Container) { c.ReadinessProbe = nil }),
		"no security context":              container(func(c *corev1.Container) { c.SecurityContext = nil }),
		"a writable file system":           container(func(c *corev1.Container) { c.SecurityContext.ReadOnlyRootFilesystem = new(false) }),
		"a capability":                     container(func(c *corev1.Container) { c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }),
		"a writable mount of the settings": container(func(c *corev1.Container) { c.VolumeMounts[0].ReadOnly = false }),
		"no mounts":                        container(func(c *corev1.Container) { c.VolumeMounts = nil }),
		"other settings":                   pod(func(pod *corev1.PodSpec) { pod.Volumes[0].ConfigMap.Name = "other-settings" }),
		"a volume of another kind": pod(func(pod *corev1.PodSpec) {
			pod.Volumes[1].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}),
		"a token for the API server": pod(func(pod *corev1.PodSpec) { pod.AutomountServiceAccountToken = nil }),
		"root allowed":               pod(func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot = new(false) }),
		"no pod security context":    pod(func(pod *corev1.PodSpec) { pod.SecurityContext = nil }),
		"every system call allowed": pod(func(pod *corev1.PodSpec) {
			pod.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
		}),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedGuestbook())
			change(deployment)
			g.Expect(deployment).NotTo(Equal(newDeployment(storedGuestbook())), "the test must change something")
			setDeployment(deployment, storedGuestbook(), "present")
			g.Expect(deployment).To(Equal(newDeployment(storedGuestbook())), "see setDeployment in deployment.go")
		})
	}
}

func TestSetDeploymentRestoresTheContainer(t *testing.T) {
	g := NewWithT(t)
	deployment := newDeployment(storedGuestbook())
	deployment.Spec.Template.Spec.Containers[0].Name = "renamed"
	setDeployment(deployment, storedGuestbook(), "present")
	g.Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(
		HaveField("Name", "renamed"), Equal(newDeployment(storedGuestbook()).Spec.Template.Spec.Containers[0])))
}

func TestSetService(t *testing.T) {
	g := NewWithT(t)
	service := newService(storedGuestbook())
	g.Expect(service.Labels).To(Equal(selectorLabels(storedGuestbook())), "see setService in deployment.go")
	g.Expect(service.Spec).To(Equal(corev1.ServiceSpec{
		Type:     corev1.ServiceTypeClusterIP,
		Selector: selectorLabels(storedGuestbook()),
		Ports:    []corev1.ServicePort{{Name: portName, Port: 80, TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP}},
	}))
}

func TestSetServiceRepairs(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Service)
		// stays is true if the controller must leave the change alone.
		stays bool
	}{
		"nothing was changed": {change: func(*corev1.Service) {}, stays: true},
		"another port, labels, annotations and an address were added": {change: func(service *corev1.Service) {
			service.Spec.Ports = append([]corev1.ServicePort{{Name: "debug", Port: 9000}}, service.Spec.Ports...)
			service.Labels["team"], service.Annotations = "shop", map[string]string{"note": "of a user"}
			service.Spec.ClusterIP, service.Spec.SessionAffinity = "10.0.0.9", corev1.ServiceAffinityClientIP
		}, stays: true},
		"a label is missing":            {change: func(service *corev1.Service) { delete(service.Labels, managedByLabel) }},
		"it is open to the outside":     {change: func(service *corev1.Service) { service.Spec.Type = corev1.ServiceTypeNodePort }},
		"it selects other pods":         {change: func(service *corev1.Service) { service.Spec.Selector[instanceLabel] = "other" }},
		"it selects fewer pods":         {change: func(service *corev1.Service) { service.Spec.Selector["role"] = "front" }},
		"its port has another number":   {change: func(service *corev1.Service) { service.Spec.Ports[0].Port = 8080 }},
		"its port leads elsewhere":      {change: func(service *corev1.Service) { service.Spec.Ports[0].TargetPort = intstr.FromInt32(1) }},
		"its port has another protocol": {change: func(service *corev1.Service) { service.Spec.Ports[0].Protocol = corev1.ProtocolUDP }},
		"its port is gone":              {change: func(service *corev1.Service) { service.Spec.Ports = nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			service := newService(storedGuestbook())
			g.Expect(service).To(And(HaveField("Labels", Not(BeEmpty())), HaveField("Spec.Selector", Not(BeEmpty())), HaveField("Spec.Ports", Not(BeEmpty()))),
				"see setService in deployment.go")
			test.change(service)
			want := newService(storedGuestbook())
			if test.stays {
				want = service.DeepCopy()
			}
			setService(service, storedGuestbook())
			g.Expect(service).To(Equal(want), "see setService in deployment.go")
		})
	}
}

func TestServiceFindsThePods(t *testing.T) {
	g := NewWithT(t)
	service, template := newService(storedGuestbook()), newDeployment(storedGuestbook()).Spec.Template
	g.Expect(service.Spec.Ports).NotTo(BeEmpty())
	g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(template.Labels))).To(BeTrue())
	g.Expect(template.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Spec.Ports[0].TargetPort.String())))
}

// A new revision replaces every pod. So the revision must not change because of a new Go release, a new version of a
// library, or a new field of the spec that the Guestbook does not set.
func TestNewRevisionIsPinned(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newRevision(storedGuestbook(), "content")).To(Equal("uid-of-web.637775a527b98c64b399bdaf4cb91b72"),
		"the digest depends on the names and the order of the spec's fields (ConfigMapName, Alias), and on the order of the parts, see newRevision in deployment.go")
}

func TestNewRevision(t *testing.T) {
	tests := map[string]struct {
		change   func(*webappv1.Guestbook)
		settings string
		// differs is true if the pods must be replaced.
		differs bool
	}{
		"nothing changes":  {change: func(*webappv1.Guestbook) {}, settings: "content"},
		"the size changes": {change: func(guestbook *webappv1.Guestbook) { guestbook.Spec.Size = 9 }, settings: "content"},
		"labels change": {change: func(guestbook *webappv1.Guestbook) {
			guestbook.Labels, guestbook.Generation = map[string]string{"team": "shop"}, 4
		}, settings: "content"},
		"the Guestbook is new":                   {change: func(guestbook *webappv1.Guestbook) { guestbook.UID = "new" }, settings: "content", differs: true},
		"the alias changes":                      {change: func(guestbook *webappv1.Guestbook) { guestbook.Spec.Alias = "Name" }, settings: "content", differs: true},
		"another ConfigMap has the same content": {change: func(guestbook *webappv1.Guestbook) { guestbook.Spec.ConfigMapName = "other" }, settings: "content", differs: true},
		"the settings change":                    {change: func(*webappv1.Guestbook) {}, settings: "other", differs: true},
		"the settings are empty":                 {change: func(*webappv1.Guestbook) {}, differs: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			guestbook := storedGuestbook()
			test.change(guestbook)
			before := guestbook.DeepCopy()
			differs := newRevision(guestbook, test.settings) != newRevision(storedGuestbook(), "content")
			g.Expect(guestbook).To(Equal(before), "newRevision in deployment.go must change a copy of the spec, not the Guestbook")
			g.Expect(differs).To(Equal(test.differs), "see newRevision in deployment.go")
		})
	}
}
