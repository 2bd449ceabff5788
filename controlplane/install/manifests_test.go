package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/controlplane/install"
)

// limit bounds one test. A control plane starts within seconds, but takes longer under load.
const limit = 4 * time.Minute

// converting returns manifests whose webhook server converts widgets.
func converting() *install.Manifests {
	return &install.Manifests{CRDs: []string{"testdata/crd"}, Webhooks: []string{"testdata/webhooks"}, Converts: true}
}

func TestManifests(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	first := converting()
	plane, err := controlplane.Start(ctx, controlplane.Options{Nodes: -1, Install: first.Install})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	config, err := install.Config(plane)
	g.Expect(err).NotTo(HaveOccurred())
	reader, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	conversion := func(g *WithT, name string) *apiextensionsv1.CustomResourceConversion {
		found := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(reader.Get(ctx, client.ObjectKey{Name: name + ".test.example.com"}, found)).To(Succeed())
		return found.Spec.Conversion
	}
	convertedBy := func(g *WithT, serving install.Serving) {
		g.THelper()
		widgets := conversion(g, "widgets")
		g.Expect(widgets.Strategy).To(Equal(apiextensionsv1.WebhookConverter))
		g.Expect(*widgets.Webhook.ClientConfig.URL).To(Equal(fmt.Sprintf("https://127.0.0.1:%d/convert-widgets", serving.Port)))
		certificate, err := os.ReadFile(filepath.Join(serving.CertDir, "tls.crt"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(widgets.Webhook.ClientConfig.CABundle).To(Equal(certificate))
		g.Expect(conversion(g, "gizmos").Strategy).To(Equal(apiextensionsv1.NoneConverter), "a definition that names no webhook must not get one")
	}
	convertedBy(g, first.Serving)
	g.Expect(first.Definitions).To(HaveLen(2))

	t.Run("only the owner can read the webhook server's key", func(t *testing.T) {
		for name, mode := range map[string]os.FileMode{"": 0o700, "tls.key": 0o600} {
			info, err := os.Stat(filepath.Join(first.Serving.CertDir, name))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(info.Mode().Perm()).To(Equal(mode), name)
		}
	})

	t.Run("after an interruption, Install replaces what it had installed", func(t *testing.T) {
		g := NewWithT(t)
		again := converting()
		g.Expect(again.Install(ctx, plane)).To(Succeed())
		g.Expect(again.Serving.Port).NotTo(Equal(first.Serving.Port))
		convertedBy(g, again.Serving)
		first = again
	})

	t.Run("a shared cluster keeps its webhooks", func(t *testing.T) {
		g := NewWithT(t)
		guest := converting()
		g.Expect(guest.InstallShared(ctx, config, t.TempDir())).To(MatchError(ContainSubstring("already has webhooks named configmaps")))
		guest = &install.Manifests{CRDs: []string{"testdata/crd"}, Converts: true}
		guest.OnCreate = func(object client.Object) { t.Errorf("%s already exists", object.GetName()) }
		g.Expect(guest.InstallShared(ctx, config, t.TempDir())).To(Succeed())
		convertedBy(g, first.Serving)
	})

	t.Run("OnCreate is called for the definitions that a shared cluster lacks", func(t *testing.T) {
		g := NewWithT(t)
		for _, definition := range first.Definitions {
			g.Expect(reader.Delete(ctx, definition)).To(Succeed())
			g.Eventually(ctx, func() error { return reader.Get(ctx, client.ObjectKeyFromObject(definition), definition.DeepCopy()) }).
				WithTimeout(limit).ShouldNot(Succeed())
		}
		var created []string
		guest := &install.Manifests{CRDs: []string{"testdata/crd"}, OnCreate: func(object client.Object) { created = append(created, object.GetName()) }}
		g.Expect(guest.InstallShared(ctx, config, t.TempDir())).To(Succeed())
		g.Expect(created).To(ConsistOf("widgets.test.example.com", "gizmos.test.example.com"))
		g.Expect(conversion(g, "widgets").Strategy).To(Equal(apiextensionsv1.NoneConverter), "a definition must name no conversion webhook if Manifests.Converts is false")
	})

	t.Run("a folder without definitions is an error", func(t *testing.T) {
		empty := &install.Manifests{CRDs: []string{"testdata/webhooks"}}
		NewWithT(t).Expect(empty.Install(ctx, plane)).To(MatchError("[testdata/webhooks] contains no CustomResourceDefinition"))
	})
}
