package doks_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/doks"
)

func TestGodoCreatesGetsListsAndUpdatesClusters(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	wanted := request("demo", 2)
	wanted.Tags = []string{"team-a", "k8s"}
	wanted.NodePools[0].Labels = map[string]string{"disk": "fast"}
	wanted.NodePools[0].Taints = []godo.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}}
	wanted.NodePools[0].Tags = []string{"pool-tag"}
	wanted.ControlPlaneFirewall = &godo.KubernetesControlPlaneFirewall{Enabled: new(true), AllowedAddresses: []string{"192.0.2.0/24"}}
	wanted.ClusterAutoscalerConfiguration = &godo.KubernetesClusterAutoscalerConfiguration{Expanders: []string{"priority"}}
	wanted.SSO = &godo.KubernetesClusterSSO{Enabled: true, IssuerURL: "https://sso.invalid", ClientID: "demo"}
	wanted.RoutingAgent = &godo.KubernetesRoutingAgent{Enabled: new(true)}

	made, response, err := service.Create(l.ctx, wanted)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusCreated))
	l.Expect(made.VersionSlug).To(Equal("1.36.5-do.1"), "a minor version must mean its newest patch")
	l.Expect(made.Tags).To(Equal([]string{"team-a", "k8s", "k8s:" + made.ID}))
	l.Expect(made.ClusterSubnet).To(Equal("10.244.0.0/16"))
	l.Expect(made.ServiceSubnet).To(Equal("10.245.0.0/16"))
	l.Expect(made.VPCUUID).NotTo(BeEmpty())
	l.Expect(made.HA).To(BeTrue(), "high availability must be the default since 1.36")
	l.Expect(*made.MaintenancePolicy).To(Equal(godo.KubernetesMaintenancePolicy{StartTime: "00:00", Duration: "4h0m0s", Day: godo.KubernetesMaintenanceDayAny}))
	l.Expect(made.Status.State).To(Equal(godo.KubernetesClusterStatusProvisioning))
	l.Expect(made.Endpoint).To(BeEmpty())
	l.Expect(made.CreatedAt).To(Equal(beginning))
	l.Expect(*made.ControlPlaneFirewall.Enabled).To(BeTrue())
	l.Expect(made.ClusterAutoscalerConfiguration.Expanders).To(Equal([]string{"priority"}))
	l.Expect(made.SSO.ClientID).To(Equal("demo"))
	l.Expect(*made.RoutingAgent.Enabled).To(BeTrue())
	pool := made.NodePools[0]
	l.Expect(pool.Tags).To(Equal([]string{"team-a", "k8s", "pool-tag", "k8s:" + made.ID, "k8s:worker"}))
	l.Expect(pool.Labels).To(Equal(map[string]string{"disk": "fast"}))
	l.Expect(pool.Taints).To(Equal([]godo.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}}))
	l.Expect(states(made)).To(Equal([]string{"provisioning", "provisioning"}))
	l.Expect(pool.Nodes[0].Name).To(BeEmpty(), "a node must have no name before it is running")

	l.Expect(l.get(made.ID)).To(Equal(made))
	all, _, err := service.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(all).To(Equal([]*godo.KubernetesCluster{made}))

	l.clock.Step(time.Minute)
	changed, response, err := service.Update(l.ctx, made.ID, &godo.KubernetesClusterUpdateRequest{
		Name: "renamed", Tags: []string{"team-b"}, AutoUpgrade: new(true),
		MaintenancePolicy: &godo.KubernetesMaintenancePolicy{StartTime: "12:30", Day: godo.KubernetesMaintenanceDaySunday},
	})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusAccepted))
	l.Expect(changed.Name).To(Equal("renamed"))
	l.Expect(changed.Tags).To(Equal([]string{"team-b", "k8s", "k8s:" + made.ID}))
	l.Expect(changed.AutoUpgrade).To(BeTrue())
	l.Expect(changed.MaintenancePolicy.StartTime).To(Equal("12:30"))
	l.Expect(changed.MaintenancePolicy.Duration).To(Equal("4h0m0s"))
	l.Expect(*changed.RoutingAgent.Enabled).To(BeTrue(), "an update must keep what it does not mention")
	l.Expect(changed.UpdatedAt).To(Equal(beginning.Add(time.Minute)))
}

func TestGodoHandlesNodePools(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	made := l.createRunning("demo", 1)

	added, response, err := service.CreateNodePool(l.ctx, made.ID, &godo.KubernetesNodePoolCreateRequest{Name: "more", Size: "s-1vcpu-2gb", Count: 2})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusCreated))
	l.clock.Step(time.Second)
	found, _, err := service.GetNodePool(l.ctx, made.ID, added.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(found.Nodes[0].Status.State).To(Equal("running"))
	l.Expect(found.Nodes[0].Name).To(HavePrefix("more-"))
	l.Expect(found.Nodes[0].DropletID).NotTo(BeEmpty())

	all, _, err := service.ListNodePools(l.ctx, made.ID, &godo.ListOptions{PerPage: 1})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(all).To(HaveLen(2))

	taints := []godo.Taint{{Key: "a", Effect: "NoExecute"}}
	changed, response, err := service.UpdateNodePool(l.ctx, made.ID, added.ID, &godo.KubernetesNodePoolUpdateRequest{
		Name: "renamed", Count: new(3), Tags: []string{"x"}, Labels: map[string]string{"a": "b"}, Taints: &taints,
	})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusAccepted))
	l.Expect(changed.Name).To(Equal("renamed"))
	l.Expect(changed.Count).To(Equal(3))
	l.Expect(changed.Nodes).To(HaveLen(3))
	l.Expect(changed.Labels).To(Equal(map[string]string{"a": "b"}))
	l.Expect(changed.Taints).To(Equal(taints))

	response, err = service.DeleteNode(l.ctx, made.ID, added.ID, changed.Nodes[0].ID, &godo.KubernetesNodeDeleteRequest{SkipDrain: true, Replace: true})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusAccepted))

	response, err = service.DeleteNodePool(l.ctx, made.ID, added.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusNoContent))
	_, _, err = service.GetNodePool(l.ctx, made.ID, added.ID)
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound))
}

func TestGodoReadsOptionsAndUpgrades(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	options, _, err := service.GetOptions(l.ctx)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(options.Regions).NotTo(BeEmpty())
	l.Expect(options.Sizes).NotTo(BeEmpty())
	l.Expect(options.Versions[0]).To(HaveField("KubernetesVersion", "1.37.1"))

	made := l.createRunning("demo", 1)
	upgrades, _, err := service.GetUpgrades(l.ctx, made.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(upgrades).To(HaveLen(1))
	response, err := service.Upgrade(l.ctx, made.ID, &godo.KubernetesClusterUpgradeRequest{VersionSlug: upgrades[0].Slug})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusAccepted))
	l.Expect(l.get(made.ID).Status.State).To(Equal(godo.KubernetesClusterStatusUpgrading))
	l.Expect(l.get(made.ID).VersionSlug).To(Equal("1.36.5-do.1"))
	l.clock.Step(2 * time.Second)
	l.Expect(l.get(made.ID).Status.State).To(Equal(godo.KubernetesClusterStatusRunning))
	l.Expect(l.get(made.ID).VersionSlug).To(Equal("1.37.1-do.0"))
	upgrades, _, err = service.GetUpgrades(l.ctx, made.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(upgrades).To(BeNil(), "a cluster with the newest version must have no upgrades")
}

func TestGodoReadsAccessUserAndMessages(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	made := l.create("demo", 1)
	_, _, err := service.GetKubeConfig(l.ctx, made.ID, nil)
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound), "there must be no kubeconfig before the cluster is running")
	_, _, err = service.GetCredentials(l.ctx, made.ID, nil)
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound))

	l.clock.Step(time.Minute)
	content, _, err := service.GetKubeConfigWithExpiry(l.ctx, made.ID, 60)
	l.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.Load(content.KubeconfigYAML)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(config.CurrentContext).To(Equal("do-nyc1-demo"))
	l.Expect(config.Contexts["do-nyc1-demo"].AuthInfo).To(Equal("do-nyc1-demo-admin"))
	l.Expect(config.AuthInfos["do-nyc1-demo-admin"].Token).NotTo(BeEmpty())
	l.Expect(config.Clusters["do-nyc1-demo"].Server).To(Equal(l.get(made.ID).Endpoint))
	_, err = clientcmd.RESTConfigFromKubeConfig(content.KubeconfigYAML)
	l.Expect(err).NotTo(HaveOccurred())

	granted, _, err := service.GetCredentials(l.ctx, made.ID, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(granted.ExpiresAt).To(Equal(l.clock.Now().Add(7 * 24 * time.Hour)))
	granted, _, err = service.GetCredentials(l.ctx, made.ID, &godo.KubernetesClusterCredentialsGetRequest{ExpirySeconds: new(90)})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(granted.ExpiresAt).To(Equal(l.clock.Now().Add(90 * time.Second)))
	l.Expect(granted.CertificateAuthorityData).To(ContainSubstring("BEGIN CERTIFICATE"))

	user, _, err := service.GetUser(l.ctx, made.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(user.Groups).To(Equal([]string{"k8saas:authenticated"}))

	l.Expect(l.cloud.SetState(made.ID, doks.StateDegraded, "it hurts")).To(Succeed())
	messages, _, err := service.GetClusterStatusMessages(l.ctx, made.ID, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(messages).To(HaveExactElements(HaveField("Message", "it hurts")))
	later := l.clock.Now().Add(time.Minute)
	messages, _, err = service.GetClusterStatusMessages(l.ctx, made.ID, &godo.KubernetesGetClusterStatusMessagesRequest{Since: &later})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(messages).To(BeEmpty())
}

func TestGodoDeletesWithResources(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	one, two, three := l.createRunning("one", 1), l.createRunning("two", 1), l.createRunning("three", 1)
	for _, each := range []*godo.KubernetesCluster{one, two, three} {
		l.Expect(l.cloud.AddResources(each.ID, []string{each.Name + "-lb"}, []string{each.Name + "-vol"}, []string{each.Name + "-snap"})).To(Succeed())
	}
	associated, _, err := service.ListAssociatedResourcesForDeletion(l.ctx, one.ID)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(associated.Volumes).To(HaveExactElements(HaveField("Name", "one-vol")))

	_, err = service.DeleteSelective(l.ctx, one.ID, &godo.KubernetesClusterDeleteSelectiveRequest{Volumes: []string{"no-such"}})
	l.Expect(statusOf(err)).To(Equal(http.StatusUnprocessableEntity))
	response, err := service.DeleteSelective(l.ctx, one.ID, &godo.KubernetesClusterDeleteSelectiveRequest{Volumes: []string{associated.Volumes[0].ID}})
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(response.StatusCode).To(Equal(http.StatusNoContent))
	_, err = service.DeleteDangerous(l.ctx, two.ID)
	l.Expect(err).NotTo(HaveOccurred())
	_, err = service.Delete(l.ctx, three.ID)
	l.Expect(err).NotTo(HaveOccurred())

	l.clock.Step(time.Second)
	all, _, err := service.List(l.ctx, nil)
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(all).To(BeEmpty())
	left := l.cloud.Leftovers()
	l.Expect(left.Volumes).To(HaveExactElements(HaveField("Name", "three-vol")))
	l.Expect(left.LoadBalancers).To(HaveExactElements(HaveField("Name", "one-lb"), HaveField("Name", "three-lb")))
	l.Expect(left.VolumeSnapshots).To(HaveExactElements(HaveField("Name", "one-snap"), HaveField("Name", "three-snap")))
}

func TestADeletionWithResourcesCanBeRepeatedButNotChanged(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	selective, plain := l.createRunning("selective", 1), l.createRunning("plain", 1)
	for _, each := range []*godo.KubernetesCluster{selective, plain} {
		l.Expect(l.cloud.AddResources(each.ID, []string{each.Name + "-lb"}, []string{each.Name + "-vol"}, nil)).To(Succeed())
	}
	associated, _, err := service.ListAssociatedResourcesForDeletion(l.ctx, selective.ID)
	l.Expect(err).NotTo(HaveOccurred())
	wanted := &godo.KubernetesClusterDeleteSelectiveRequest{Volumes: []string{associated.Volumes[0].ID}}
	for range 2 {
		response, err := service.DeleteSelective(l.ctx, selective.ID, wanted)
		l.Expect(err).NotTo(HaveOccurred(), "the first request has removed the volume, which must not make the second one fail, see deleteSelective in resources.go")
		l.Expect(response.StatusCode).To(Equal(http.StatusNoContent))
	}
	_, err = service.DeleteSelective(l.ctx, selective.ID, &godo.KubernetesClusterDeleteSelectiveRequest{LoadBalancers: []string{associated.LoadBalancers[0].ID}})
	l.Expect(err).NotTo(HaveOccurred())
	_, err = service.Delete(l.ctx, plain.ID)
	l.Expect(err).NotTo(HaveOccurred())
	_, err = service.DeleteDangerous(l.ctx, plain.ID)
	l.Expect(err).NotTo(HaveOccurred())

	l.clock.Step(time.Second)
	left := l.cloud.Leftovers()
	l.Expect(left.LoadBalancers).To(ConsistOf(HaveField("Name", "selective-lb"), HaveField("Name", "plain-lb")), "a deletion that has started must go on as requested")
	l.Expect(left.Volumes).To(ConsistOf(HaveField("Name", "plain-vol")))
	_, err = service.DeleteSelective(l.ctx, selective.ID, wanted)
	l.Expect(statusOf(err)).To(Equal(http.StatusNotFound))
}

func TestGodoCallsThatTheEmulatorDoesNotHaveGetA404(t *testing.T) {
	l := newLab(t)
	service := l.client().Kubernetes
	made := l.createRunning("demo", 1)
	for name, call := range map[string]func() error{
		"a pool's template": func() error {
			_, _, err := service.GetNodePoolTemplate(l.ctx, made.ID, "workers")
			return err
		},
		"recycling nodes": func() error {
			_, err := service.RecycleNodePoolNodes(l.ctx, made.ID, made.NodePools[0].ID, &godo.KubernetesNodePoolRecycleNodesRequest{})
			return err
		},
		"adding a registry": func() error {
			_, err := service.AddRegistry(l.ctx, &godo.KubernetesClusterRegistryRequest{})
			return err
		},
		"removing a registry": func() error {
			_, err := service.RemoveRegistry(l.ctx, &godo.KubernetesClusterRegistryRequest{})
			return err
		},
		"linting a cluster": func() error {
			_, _, err := service.RunClusterlint(l.ctx, made.ID, &godo.KubernetesRunClusterlintRequest{})
			return err
		},
		"the results of linting": func() error {
			_, _, err := service.GetClusterlintResults(l.ctx, made.ID, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(statusOf(call())).To(Equal(http.StatusNotFound))
		})
	}
}
