package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/operator-workshop/operatortest/behaviours"
	"example.com/operator-workshop/operatortest/learn"
)

// notesVariable, if set, makes the test binary run as an operator with webhooks. Its value is the folder with the
// certificate. The binary's arguments are the port and the namespace. With a third argument, it runs no controllers. If
// lookupVariable is set, too, the operator's validating webhook looks up a ConfigMap with the name "rules", which must
// exist.
const (
	notesVariable  = "OPERATORTEST_NOTES"
	lookupVariable = "OPERATORTEST_NOTES_LOOKUP"
)

// notesCommand is the command that starts this operator.
var notesCommand = `[env, "` + notesVariable + `={{.CertDir}}", "` + os.Args[0] + `", "{{.WebhookPort}}", "{{.Namespace}}"]`

var noteKind = schema.GroupVersionKind{Group: "webhooks.example.com", Version: "v1", Kind: "Note"}

func TestMain(m *testing.M) {
	if certificates := os.Getenv(notesVariable); certificates != "" {
		if err := runNotes(ctrl.SetupSignalHandler(), certificates, os.Args[1], os.Args[2], len(os.Args) > 3); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(greeterVariable) != "" {
		if err := runGreeter(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// runNotes runs an operator that writes the text of each Note to a ConfigMap, or only its webhooks.
func runNotes(ctx context.Context, certificates, port, namespace string, webhooksOnly bool) error {
	ctrl.SetLogger(klog.Background())
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: number, CertDir: certificates}),
		Metrics:       server.Options{BindAddress: "0"},
		Cache:         cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Client:        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	manager.GetWebhookServer().Register("/default", &admission.Webhook{Handler: admission.HandlerFunc(defaultNote)})
	validate := validateNote
	if os.Getenv(lookupVariable) != "" {
		validate = withRules(manager.GetClient())
	}
	manager.GetWebhookServer().Register("/validate", &admission.Webhook{Handler: admission.HandlerFunc(validate)})
	manager.GetWebhookServer().Register("/convert", http.HandlerFunc(convertNotes))
	if webhooksOnly {
		return manager.Start(ctx)
	}
	reconciler := &noteReconciler{manager.GetClient()}
	if err := ctrl.NewControllerManagedBy(manager).For(newNote()).Owns(&corev1.ConfigMap{}).Named("note").Complete(reconciler); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func newNote() *unstructured.Unstructured {
	note := &unstructured.Unstructured{}
	note.SetGroupVersionKind(noteKind)
	return note
}

func textOf(raw []byte) (text string, err error) {
	var note struct{ Spec struct{ Text string } }
	return note.Spec.Text, json.Unmarshal(raw, &note)
}

// defaultNote sets a default text in Notes without one.
func defaultNote(_ context.Context, request admission.Request) admission.Response {
	text, err := textOf(request.Object.Raw)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case text != "":
		return admission.Allowed("")
	}
	note := &unstructured.Unstructured{}
	if err := note.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if err := unstructured.SetNestedField(note.Object, "empty", "spec", "text"); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	changed, err := note.MarshalJSON()
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func validateNote(_ context.Context, request admission.Request) admission.Response {
	text, err := textOf(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if strings.ToUpper(text) == text {
		return admission.Denied("don't shout")
	}
	return admission.Allowed("")
}

// withRules returns a handler like validateNote that also looks up the rules in the Note's namespace, in the cache.
func withRules(reader client.Reader) func(context.Context, admission.Request) admission.Response {
	return func(ctx context.Context, request admission.Request) admission.Response {
		var err error
		_ = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Second, true, func(ctx context.Context) (bool, error) { // the cache may be late
			err = reader.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: "rules"}, &corev1.ConfigMap{})
			return err == nil, nil
		})
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("look up the rules: %w", err))
		}
		return validateNote(ctx, request)
	}
}

// convertNotes converts Notes: a field of the spec has a different name in each version.
func convertNotes(reply http.ResponseWriter, request *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(request.Body).Decode(review); err != nil {
		http.Error(reply, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		note := &unstructured.Unstructured{}
		if err := note.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(reply, err.Error(), http.StatusBadRequest)
			return
		}
		note.SetAPIVersion(review.Request.DesiredAPIVersion)
		names := []string{"text", "message"}
		if note.GroupVersionKind().Version == noteKind.Version {
			names = []string{"message", "text"}
		}
		if spec, found := note.Object["spec"].(map[string]any); found {
			if value, found := spec[names[0]]; found {
				delete(spec, names[0])
				spec[names[1]] = value
			}
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: note})
	}
	review.Request = nil
	_ = json.NewEncoder(reply).Encode(review)
}

type noteReconciler struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *noteReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	note := newNote()
	if err := r.Get(ctx, request.NamespacedName, note); err != nil || note.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	text, _, err := unstructured.NestedString(note.Object, "spec", "text")
	if err != nil {
		return reconcile.Result{}, err
	}
	if text == "" {
		return reconcile.Result{}, errors.New("the webhook has set no text")
	}
	wanted := map[string]string{"text": text}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: note.GetNamespace(), Name: note.GetName(), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(note, noteKind)},
	}, Data: wanted}
	found := &corev1.ConfigMap{}
	switch err := r.Get(ctx, request.NamespacedName, found); {
	case apierrors.IsNotFound(err):
		if err := r.Create(ctx, made); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return reconcile.Result{}, err
	case found.Data["text"] != text:
		found.Data = wanted
		if err := r.Update(ctx, found); err != nil {
			return reconcile.Result{}, err
		}
	}
	seen, _, _ := unstructured.NestedInt64(note.Object, "status", "observedGeneration")
	if seen == note.GetGeneration() {
		return reconcile.Result{}, nil
	}
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, note.GetGeneration())
	return reconcile.Result{}, r.Status().Patch(ctx, note, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// describeNotes copies testdata/webhooks to a new folder, and adds the operator's operatortest.yaml.
func describeNotes(t *testing.T, command, webhooks string) (path string) {
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(os.CopyFS(dir, os.DirFS("testdata/webhooks"))).To(Succeed())
	path = filepath.Join(dir, "operatortest.yaml")
	g.Expect(os.WriteFile(path, []byte(`crds: [crd.yaml]
samples: samples
invalidSamples: invalid
sample: samples/note.yaml
roles: [role.yaml]
command: `+command+`
webhooks: `+webhooks+`
converged: has(object.status) && object.status.observedGeneration == object.metadata.generation
children:
- apiVersion: v1
  kind: ConfigMap
  drift:
    another text: {data: {text: other}}
maxWrites: 2
values:
  spec.text: [hello, good morning]
timeout: 20s
`), 0o600)).To(Succeed())
	return path
}

// Each of the three webhooks is needed: one sets the sample's text, one refuses the invalid samples, and one converts
// between v2 and v1, the stored version.
func TestWebhooksOfAProcess(t *testing.T) {
	g := NewWithT(t)
	file := describeNotes(t, notesCommand, "[manifests.yaml]")
	var output bytes.Buffer
	err := run(t.Context(), runOptions{file: file, Options: behaviours.Options{Only: []string{"schema", "converges", "update", "crash"}}}, &output)
	g.Expect(err).NotTo(HaveOccurred(), output.String())
	g.Expect(output.String()).To(MatchRegexp(`schema +passed`))
	g.Expect(output.String()).To(MatchRegexp(`crash +passed +[1-9]`))
}

func TestWebhooksThatLookUpObjects(t *testing.T) {
	look := strings.Replace(notesCommand, `[env, `, `[env, "`+lookupVariable+`=yes", `, 1)
	alone := strings.TrimSuffix(look, "]") + `, "{{if .WebhooksOnly}}alone{{end}}"]`
	tests := map[string]struct{ command, more, want string }{
		"in a process that sees only its own namespace": {command: look, want: "unknown namespace for the cache"},
		"in a process without controllers":              {command: alone},
		"in a process without controllers, of an operator that the kit confines": {
			command: strings.ReplaceAll(alone, "{{.Namespace}}", ""), more: "confine: true\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := describeNotes(t, test.command, "[manifests.yaml]")
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			content = append(content, "prepare: [{apiVersion: v1, kind: ConfigMap, metadata: {name: rules}}]\n"+test.more...)
			g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
			var output bytes.Buffer
			err = run(t.Context(), runOptions{file: file, Options: behaviours.Options{Only: []string{"converges", "update"}}}, &output)
			if test.want != "" {
				g.Expect(err).To(MatchError(errLacking))
				g.Expect(output.String()).To(ContainSubstring(test.want))
				return
			}
			g.Expect(err).NotTo(HaveOccurred(), output.String())
		})
	}
}

func TestLearnWithWebhooks(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Dir(describeNotes(t, notesCommand, "[manifests.yaml]"))
	command := []string{"env", notesVariable + "={{.CertDir}}", os.Args[0], "{{.WebhookPort}}", "{{.Namespace}}"}
	options := learnOptions{file: filepath.Join(dir, "learned.yaml"), Options: learn.Options{
		CRDs: []string{filepath.Join(dir, "crd.yaml")}, Webhooks: []string{filepath.Join(dir, "manifests.yaml")},
		Roles: []string{filepath.Join(dir, "role.yaml")}, Sample: filepath.Join(dir, "samples/note.yaml"), Command: command, Timeout: 20 * time.Second,
	}}
	g.Expect(runLearn(t.Context(), options, &bytes.Buffer{})).To(Succeed())
	content, err := os.ReadFile(options.file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring("manifests.yaml"))
	g.Expect(string(content)).To(ContainSubstring("  kind: ConfigMap\n  name: object.metadata.name\n"), "the webhook must set the sample's text: without it, no ConfigMap is created")
}

func TestWebhooksThatAreNotServed(t *testing.T) {
	tests := map[string]struct{ command, webhooks, want string }{
		"an operator that is not told where to serve": {
			`["` + os.Args[0] + `", "9443", "{{.Namespace}}"]`, "[manifests.yaml]",
			"webhooks: command must tell the operator where to serve them, for example with --webhook-port={{.WebhookPort}}",
		},
		"an operator that listens elsewhere": {
			`[sh, -c, "exec sleep 1000 # {{.WebhookPort}}"]`, "[manifests.yaml]", "expected the operator to serve its webhooks at 127.0.0.1:",
		},
		"an operator that exits": {
			`[sh, -c, "echo out of paper {{.WebhookPort}}; exit 3"]`, "[manifests.yaml]", "out of paper",
		},
		"a folder that does not exist": {
			notesCommand, "[absent]", "absent",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			file := describeNotes(t, test.command, test.webhooks)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(file, bytes.ReplaceAll(content, []byte("timeout: 20s"), []byte("timeout: 3s")), 0o600)).To(Succeed())
			err = run(t.Context(), runOptions{file: file, Options: behaviours.Options{Only: []string{"converges"}}}, &bytes.Buffer{})
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}
