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

	cachev1alpha1 "example.com/operator-workshop/04-operatorsdk-memcached/api/v1alpha1"
)

// storedMemcached returns a Memcached as the API server returns it.
func storedMemcached() *cachev1alpha1.Memcached {
	return &cachev1alpha1.Memcached{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "sessions", UID: "uid-of-sessions", Generation: 3, ResourceVersion: "30",
			Finalizers: []string{cachev1alpha1.Finalizer},
		},
		Spec: cachev1alpha1.MemcachedSpec{Size: 2, ContainerPort: 11211, MemoryMegabytes: 64},
	}
}

// newDeployment returns the Memcached's Deployment with the fields that setDeployment sets, and no owner.
func newDeployment(memcached *cachev1alpha1.Memcached) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	setDeployment(deployment, memcached, DefaultImage)
	return deployment
}

func newService(memcached *cachev1alpha1.Memcached) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: memcached.Namespace, Name: memcached.Name}}
	setService(service, memcached)
	return service
}

func TestSetDeployment(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	deployment := newDeployment(memcached)
	g.Expect(memcached).To(Equal(storedMemcached()), "the Memcached belongs to the cache and must not change")

	template := deployment.Spec.Template
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "see setDeployment in desired.go")
	g.Expect(selectorLabels(memcached)).To(Equal(map[string]string{
		"app.kubernetes.io/name": "memcached", instanceLabel: "sessions", managedByLabel: controllerName,
	}), "see selectorLabels in desired.go")
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.Matches(labels.Set(template.Labels))).To(BeTrue(), "the selector must match the pods")
	g.Expect(template.Labels).To(HaveKeyWithValue(managedByLabel, controllerName), "the cache holds only pods with this label, see CacheByObject")
	//workshop:step 4.9a
	g.Expect(template.Annotations).To(Equal(map[string]string{revisionAnnotation: newRevision(memcached, DefaultImage)}), "see setDeployment in desired.go")

	g.Expect(template.Spec.Containers).To(ConsistOf(HaveField("Name", containerName)), "see setTemplate in desired.go")

	memcached.Spec.Size = 5
	deployment.Labels["extra"] = "label"
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)), "the Deployment must not share memory with the cached Memcached")
	g.Expect(deployment.Spec.Template.Labels).NotTo(HaveKey("extra"), "the two sets of labels must not share memory")
	g.Expect(deployment.Spec.Selector.MatchLabels).NotTo(HaveKey("extra"))
}

func TestSetContainer(t *testing.T) {
	g := NewWithT(t)
	container := newDeployment(storedMemcached()).Spec.Template.Spec.Containers[0]
	g.Expect(container.Image).To(Equal(DefaultImage), "see setContainer in desired.go")
	g.Expect(container.Args).To(Equal([]string{"--port=11211", "--memory-limit=64"}), "memcached's manual page lists these flags")
	g.Expect(container.Ports).To(ConsistOf(corev1.ContainerPort{Name: portName, ContainerPort: 11211, Protocol: corev1.ProtocolTCP}))
	g.Expect(container.ReadinessProbe).NotTo(BeNil(), "see setContainer in desired.go")
	g.Expect(container.ReadinessProbe.TCPSocket).To(HaveValue(Equal(corev1.TCPSocketAction{Port: intstr.FromString(portName)})),
		"the probe must refer to the port by its name, so that only the port has the number, see setContainer in desired.go")
}

func TestSetContainerLeavesTheRest(t *testing.T) {
	g := NewWithT(t)
	deployment := newDeployment(storedMemcached())
	container := &deployment.Spec.Template.Spec.Containers[0]
	g.Expect(container.ReadinessProbe).NotTo(BeNil(), "see setContainer in desired.go")
	debug := corev1.ContainerPort{Name: "debug", ContainerPort: 9000}
	container.Ports = append(container.Ports, debug)
	container.ReadinessProbe.PeriodSeconds = 30
	setDeployment(deployment, storedMemcached(), DefaultImage)
	g.Expect(container.Ports).To(ContainElement(debug), "ports that others have added must stay, see setContainer in desired.go")
	g.Expect(container.ReadinessProbe.PeriodSeconds).To(BeEquivalentTo(30), "the probe's other fields must stay, see setContainer in desired.go")
}

// The pods meet the pod security standard "restricted", get no token, and can't write to the root file system.
func TestPodsAreRestricted(t *testing.T) {
	g := NewWithT(t)
	pod := newDeployment(storedMemcached()).Spec.Template.Spec
	g.Expect(pod.AutomountServiceAccountToken).To(HaveValue(BeFalse()), "AutomountServiceAccountToken must be false, see setTemplate in desired.go")
	g.Expect(pod.SecurityContext).NotTo(BeNil(), "see setTemplate in desired.go")
	g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()), "RunAsNonRoot must be true, see setTemplate in desired.go")
	g.Expect(pod.SecurityContext.RunAsUser).To(HaveValue(BeEquivalentTo(user)), "RunAsUser must be the official image's user, see setTemplate in desired.go")
	g.Expect(pod.SecurityContext.SeccompProfile).To(HaveValue(HaveField("Type", corev1.SeccompProfileTypeRuntimeDefault)), "SeccompProfile must be RuntimeDefault, see setTemplate in desired.go")
	for _, container := range pod.Containers {
		found := container.SecurityContext
		g.Expect(found).NotTo(BeNil(), "see setContainer in desired.go")
		g.Expect(found.AllowPrivilegeEscalation).To(HaveValue(BeFalse()), "AllowPrivilegeEscalation must be false, see setContainer in desired.go")
		g.Expect(found.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()), "ReadOnlyRootFilesystem must be true, see setContainer in desired.go")
		g.Expect(found.Capabilities).To(HaveValue(Equal(corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})), "Capabilities must drop all, see setContainer in desired.go")
	}
}

func TestImageAndPullPolicy(t *testing.T) {
	for _, image := range []string{
		"memcached",
		"memcached:1.6.39-alpine",
		"registry.test:5000/team/memcached",
		"registry.test:5000/team/memcached:1.6.39@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	} {
		t.Run(image, func(t *testing.T) {
			g := NewWithT(t)
			memcached := storedMemcached()
			reconciler := &MemcachedReconciler{Image: "operators/choice:1"}
			g.Expect(reconciler.imageOf(memcached)).To(Equal("operators/choice:1"), "if the Memcached names no image, it gets the operator's, see imageOf in children.go")
			memcached.Spec.Image = image
			g.Expect(reconciler.imageOf(memcached)).To(Equal(image), "see imageOf in children.go")
			deployment := newDeployment(memcached)
			setDeployment(deployment, memcached, image)
			container := deployment.Spec.Template.Spec.Containers[0]
			g.Expect(container.Image).To(Equal(image), "the image must be used as it is")
			g.Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "the policy must be the same for each image: otherwise the API server's first choice would stay")
		})
	}
}

func TestSetDeploymentLeavesTheRest(t *testing.T) {
	tests := map[string]func(*appsv1.Deployment){
		"nothing was changed": func(*appsv1.Deployment) {},
		"labels and annotations were added": func(deployment *appsv1.Deployment) {
			deployment.Labels["team"], deployment.Annotations = "shop", map[string]string{"note": "of a user"}
			deployment.Spec.Template.Labels["team"] = "shop"
			deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
		},
		"the selector is that of an older version": func(deployment *appsv1.Deployment) {
			deployment.Spec.Selector.MatchLabels = map[string]string{instanceLabel: "sessions"}
		},
		"a sidecar was added, before memcached": func(deployment *appsv1.Deployment) {
			pod := &deployment.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "exporter", Image: "exporter:1"}}, pod.Containers...)
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "scratch"})
		},
		//workshop:step 4.9c
		"fields were added to the pod and its container": func(deployment *appsv1.Deployment) {
			container := &deployment.Spec.Template.Spec.Containers[0]
			container.Env = append(container.Env, corev1.EnvVar{Name: "MODE", Value: "test"})
			container.Ports = append(container.Ports, corev1.ContainerPort{Name: "debug", ContainerPort: 9000})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/tmp"})
			container.ReadinessProbe.PeriodSeconds = 30
			container.SecurityContext.RunAsGroup = new(int64(101))
			deployment.Spec.Template.Spec.SecurityContext.FSGroup = new(int64(101))
		},
		"the rollout was made slower": func(deployment *appsv1.Deployment) {
			deployment.Spec.MinReadySeconds, deployment.Spec.ProgressDeadlineSeconds = 5, new(int32(900))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedMemcached())
			change(deployment)
			before := deployment.DeepCopy()
			setDeployment(deployment, storedMemcached(), DefaultImage)
			g.Expect(deployment).To(BeComparableTo(before), "entries that others have added must stay, and existing entries must not be added again (- found, + wanted)")
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
		"a label removed":       func(deployment *appsv1.Deployment) { delete(deployment.Labels, managedByLabel) },
		"a pod's label changed": func(deployment *appsv1.Deployment) { deployment.Spec.Template.Labels[instanceLabel] = "other" },
		"another image":         container(func(c *corev1.Container) { c.Image = "other:1" }),
		"an image that is always pulled": container(func(c *corev1.Container) {
			c.ImagePullPolicy = corev1.PullAlways
		}),
		"another argument":    container(func(c *corev1.Container) { c.Args[1] = "--memory-limit=9000" }),
		"a missing argument":  container(func(c *corev1.Container) { c.Args = c.Args[:1] }),
		"more memory":         container(func(c *corev1.Container) { c.Resources.Limits[corev1.ResourceMemory] = resource.MustParse("9Gi") }),
		"no request":          container(func(c *corev1.Container) { c.Resources.Requests = nil }),
		"another port":        container(func(c *corev1.Container) { c.Ports[0].ContainerPort = 80 }),
		"another protocol":    container(func(c *corev1.Container) { c.Ports[0].Protocol = corev1.ProtocolUDP }),
		"another probe":       container(func(c *corev1.Container) { c.ReadinessProbe.TCPSocket.Port = intstr.FromInt32(1) }),
		"two kinds of probe":  container(func(c *corev1.Container) { c.ReadinessProbe.Exec = &corev1.ExecAction{Command: []string{"true"}} }),
		"no probe":            container(func(c *corev1.Container) { c.ReadinessProbe = nil }),
		"no security context": container(func(c *corev1.Container) { c.SecurityContext = nil }),
		"more privileges":     container(func(c *corev1.Container) { c.SecurityContext.AllowPrivilegeEscalation = new(true) }),
		"a writable file system": container(func(c *corev1.Container) {
			c.SecurityContext.ReadOnlyRootFilesystem = new(false)
		}),
		"a capability":               container(func(c *corev1.Container) { c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }),
		"a token for the API server": pod(func(pod *corev1.PodSpec) { pod.AutomountServiceAccountToken = nil }),
		"root allowed":               pod(func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot = new(false) }),
		"root":                       pod(func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsUser = new(int64(0)) }),
		"no pod security context":    pod(func(pod *corev1.PodSpec) { pod.SecurityContext = nil }),
		"every system call allowed": pod(func(pod *corev1.PodSpec) {
			pod.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
		}),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment := newDeployment(storedMemcached())
			change(deployment)
			g.Expect(deployment).NotTo(Equal(newDeployment(storedMemcached())), "the test must change something")
			setDeployment(deployment, storedMemcached(), DefaultImage)
			g.Expect(deployment).To(BeComparableTo(newDeployment(storedMemcached())), "see setDeployment, setTemplate and setContainer in desired.go (- found, + wanted)")
		})
	}
}

func TestSetDeploymentRestoresTheContainer(t *testing.T) {
	g := NewWithT(t)
	deployment := newDeployment(storedMemcached())
	deployment.Spec.Template.Spec.Containers[0].Name = "renamed"
	setDeployment(deployment, storedMemcached(), DefaultImage)
	g.Expect(deployment.Spec.Template.Spec.Containers).To(ConsistOf(
		HaveField("Name", "renamed"), Equal(newDeployment(storedMemcached()).Spec.Template.Spec.Containers[0])))
}

func TestSetService(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Service)
		// stays is true if the operator must leave the change alone.
		stays bool
	}{
		"nothing was changed": {change: func(*corev1.Service) {}, stays: true},
		"another port, labels and annotations were added": {change: func(service *corev1.Service) {
			service.Spec.Ports = append([]corev1.ServicePort{{Name: "debug", Port: 9000}}, service.Spec.Ports...)
			service.Labels["team"], service.Annotations = "shop", map[string]string{"note": "of a user"}
			service.Spec.PublishNotReadyAddresses = true
		}, stays: true},
		"a label is missing":            {change: func(service *corev1.Service) { delete(service.Labels, managedByLabel) }},
		"it has a port on every node":   {change: func(service *corev1.Service) { service.Spec.Type = corev1.ServiceTypeNodePort }},
		"it has an address":             {change: func(service *corev1.Service) { service.Spec.ClusterIP = "10.0.0.9" }},
		"it selects other pods":         {change: func(service *corev1.Service) { service.Spec.Selector[instanceLabel] = "other" }},
		"it selects fewer pods":         {change: func(service *corev1.Service) { service.Spec.Selector["role"] = "front" }},
		"its port has another number":   {change: func(service *corev1.Service) { service.Spec.Ports[0].Port = 8080 }},
		"its port has another target":   {change: func(service *corev1.Service) { service.Spec.Ports[0].TargetPort = intstr.FromInt32(1) }},
		"its port has another protocol": {change: func(service *corev1.Service) { service.Spec.Ports[0].Protocol = corev1.ProtocolUDP }},
		"its port is gone":              {change: func(service *corev1.Service) { service.Spec.Ports = nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			service := newService(storedMemcached())
			g.Expect(service.Spec.Ports).To(HaveLen(1), "see setService in desired.go")
			test.change(service)
			want := newService(storedMemcached())
			if test.stays {
				want = service.DeepCopy()
			}
			setService(service, storedMemcached())
			g.Expect(service).To(Equal(want), "see setService in desired.go")
		})
	}
}

func TestServiceAndBudgetFindThePods(t *testing.T) {
	g := NewWithT(t)
	memcached := storedMemcached()
	memcached.Spec.ContainerPort = 12000
	service, template := newService(memcached), newDeployment(memcached).Spec.Template
	g.Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone), "clients need every pod's address")
	g.Expect(labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(template.Labels))).To(BeTrue())
	g.Expect(template.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", service.Spec.Ports[0].TargetPort.String())))
	g.Expect(service.Spec.Ports[0].Port).To(BeEquivalentTo(12000), "a headless Service translates no ports")
	//workshop:step 4.10
	budget := newBudget(memcached)
	//workshop:step 4.10
	g.Expect(budget.Spec.Selector).To(HaveValue(HaveField("MatchLabels", service.Spec.Selector)), "see setBudget in desired.go")
}
