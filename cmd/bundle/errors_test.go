package main

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestManifestsThatMakeNoBundle(t *testing.T) {
	tests := map[string]struct {
		// The input is testdata/manifests.yaml, with the first occurrence of old replaced by new.
		old, new string
		want     string
	}{
		"a document that is not YAML":         {old: "  replicas: 1\n", new: "  replicas: 1: 2\n", want: "read document 6 of the manifests: "},
		"a duplicate field":                   {old: "  replicas: 1\n", new: "  replicas: 1\n  replicas: 2\n", want: `key "replicas" already set`},
		"an object without a name":            {old: "metadata:\n  name: metrics\n", new: "metadata:\n", want: "a Service needs apiVersion and metadata.name"},
		"an object without a kind":            {old: "kind: Service\n", new: "", want: "read document 7 of the manifests: Object 'Kind' is missing"},
		"no ClusterServiceVersion":            {old: "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion", new: "apiVersion: v1\nkind: Secret", want: "there is no ClusterServiceVersion"},
		"two ClusterServiceVersions":          {old: "apiVersion: v1\nkind: Service\n", new: "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n", want: "there are two objects of kind ClusterServiceVersion, gadget-operator.v0.0.0 and metrics"},
		"a base whose name has no version":    {old: "name: gadget-operator.v0.0.0", new: "name: gadget-operator", want: "the ClusterServiceVersion's name is gadget-operator"},
		"a base with a word for its version":  {old: "name: gadget-operator.v0.0.0", new: "name: gadget-operator.version", want: "the ClusterServiceVersion's name is gadget-operator.version"},
		"a base with an invalid name":         {old: "name: gadget-operator.v0.0.0", new: "name: Gadget_Operator.v0.0.0", want: "the name Gadget_Operator.v0.1.0 can't be used"},
		"a name that is too long for a label": {old: "name: gadget-operator.v0.0.0", new: "name: a123456789b123456789c123456789d123456789e123456789f123456789.v0.0.0", want: "no more than 63"},
		"no Deployment":                       {old: "apiVersion: apps/v1\nkind: Deployment", new: "apiVersion: v1\nkind: Secret", want: "there is no Deployment"},
		"two Deployments":                     {old: "apiVersion: v1\nkind: Service\n", new: "apiVersion: apps/v1\nkind: Deployment\n", want: "there are two objects of kind Deployment, manager and metrics"},
		"a Deployment without an account":     {old: "      serviceAccountName: manager\n", new: "", want: "the Deployment manager names no service account"},
		"a Deployment without containers":     {old: "      containers:", new: "      ephemeralContainers:", want: "the Deployment manager has no container"},
		"an invalid Deployment":               {old: "      containers:\n", new: "      initContainers: 1\n      containers:\n", want: "read Deployment manager: "},
		"an image without a tag":              {old: "gadget-operator:v1\n", new: "gadget-operator\n", want: `the image "registry.example.com:5000/gadget-operator" of manager is not pinned`},
		"an image with the tag latest":        {old: "gadget-operator:v1\n", new: "gadget-operator:latest\n", want: `gadget-operator:latest" of manager is not pinned`},
		"a variable with an invalid digest":   {old: "front@sha256:", new: "front@", want: "of front-end is not pinned"},
		"a CRD without a description":         {old: "      version: v1\n", new: "      version: v2\n", want: "gadgets.toys.example.com in version v1 is not described"},
		"a second version that is served":     {old: "served: false", new: "served: true", want: "gadgets.toys.example.com in version v1beta1 is not described"},
		"a description without a CRD": {
			old:  "    owned:\n",
			new:  "    owned:\n    - name: widgets.toys.example.com\n      version: v1\n      kind: Widget\n",
			want: "describes a kind that config/crd does not have: Widget widgets.toys.example.com in version v1",
		},
		"a description of an unknown field":   {old: "      - path: paint.color\n", new: "      - path: paint.size\n", want: "the ClusterServiceVersion describes spec.paint.size of Gadget, which the CRD does not have"},
		"a base with a number for its kinds":  {old: "  customresourcedefinitions:\n    owned:\n", new: "  customresourcedefinitions: 1\n  other:\n    owned:\n", want: "read ClusterServiceVersion gadget-operator.v0.0.0: "},
		"no sample":                           {old: "apiVersion: toys.example.com/v1\nkind: Gadget\n", new: "apiVersion: v1\nkind: Secret\n", want: "there is no sample of Gadget in version v1"},
		"a sample of an unknown kind":         {old: "apiVersion: toys.example.com/v1\nkind: Gadget\n", new: "apiVersion: toys.example.com/v1\nkind: Widget\n", want: "Widget sample is of a kind that is neither the operator's own"},
		"a sample of an unknown version":      {old: "apiVersion: toys.example.com/v1\n", new: "apiVersion: toys.example.com/v2\n", want: "Gadget sample is of a kind that is neither the operator's own"},
		"an object that OLM can't install":    {old: "apiVersion: v1\nkind: Service\n", new: "apiVersion: batch/v1\nkind: Job\n", want: "Job metrics is of a kind that is neither the operator's own nor one that OLM installs"},
		"a binding to a role that is missing": {old: "kind: ClusterRole, name: work}", new: "kind: ClusterRole, name: cluster-admin}", want: "RoleBinding work grants the ClusterRole cluster-admin, which config/ does not have"},
		"a binding for others as well": {
			old:  "kind: ClusterRole, name: tokens}\nsubjects:\n",
			new:  "kind: ClusterRole, name: tokens}\nsubjects:\n- {kind: ServiceAccount, name: reader, namespace: gadgets}\n",
			want: "ClusterRoleBinding tokens is for the service account manager and for others",
		},
		"two objects for one file": {old: "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: reader\n", new: "apiVersion: v1\nkind: Service\nmetadata:\n  name: metrics\n", want: "there are two objects of kind Service with the name metrics"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			manifests := gadgetManifests(t)
			g.Expect(manifests).To(ContainSubstring(test.old), "the test's change must fit testdata/manifests.yaml")
			dir := t.TempDir()
			err := run(gadgetFlags, strings.NewReader(strings.Replace(manifests, test.old, test.new, 1)), dir)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must have one line")
			g.Expect(fs.ReadDir(os.DirFS(dir), ".")).To(BeEmpty(), "no part of a bundle may be written")
		})
	}
}

func TestFlagsThatMakeNoBundle(t *testing.T) {
	tests := map[string]struct {
		flags []string
		want  string
	}{
		"no version":                        {flags: []string{"--channels=fast"}, want: "--version="},
		"a version of two numbers":          {flags: []string{"--version=1.0", "--channels=fast"}, want: "--version=1.0: give three numbers"},
		"a version that begins with v":      {flags: []string{"--version=v1.0.0", "--channels=fast"}, want: "--version=v1.0.0: give three numbers"},
		"a number that begins with 0":       {flags: []string{"--version=1.00.0", "--channels=fast"}, want: "--version=1.00.0: give three numbers"},
		"a version that can't be in a name": {flags: []string{"--version=1.0.0+build", "--channels=fast"}, want: "--version=1.0.0+build: give three numbers"},
		"no channel":                        {flags: []string{"--version=1.0.0"}, want: "--channels: give names"},
		"a channel without a name":          {flags: []string{"--version=1.0.0", "--channels=fast,"}, want: "--channels: give names"},
		"a channel with a space":            {flags: []string{"--version=1.0.0", "--channels=candidate, fast"}, want: "--channels: give names"},
		"a default that is not a channel":   {flags: []string{"--version=1.0.0", "--channels=candidate,fast", "--default-channel=stable"}, want: "--default-channel=stable: it is not one of --channels=candidate,fast"},
		"an unknown flag":                   {flags: []string{"--release=1.0.0"}, want: "-release: the flags are --version"},
		"an argument":                       {flags: []string{"1.0.0"}, want: `unexpected argument "1.0.0"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(run(test.flags, strings.NewReader(""), t.TempDir())).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

func TestFlagsThatMakeABundle(t *testing.T) {
	tests := map[string][]string{
		"a release candidate":             {"--version=1.10.0-rc.1", "--channels=candidate"},
		"one channel that is the default": {"--version=0.0.1", "--channels=fast", "--default-channel=fast"},
	}
	for name, flags := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(run(flags, strings.NewReader(gadgetManifests(t)), t.TempDir())).To(Succeed())
		})
	}
}
