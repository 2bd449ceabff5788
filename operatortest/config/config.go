// Package config reads operatortest.yaml, the description of an operator that runs as a process.
package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/operatortest"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/process"
)

// File is the content of operatortest.yaml. It has most fields of [operatortest.Operator], with CEL expressions,
// objects or rules in place of functions. It also has fields that say how to start the process. In an expression,
// object is the resource with all its fields. Paths are relative to the file's folder.
type File struct {
	// CRDs are files and folders with the operator's CustomResourceDefinitions.
	CRDs []string `json:"crds"`
	// Samples is a folder with objects that the API server must accept. InvalidSamples is a folder with files whose last
	// object it must refuse; the first line of each file gives the reason: "# refused: " and part of the message.
	Samples        string `json:"samples,omitempty"`
	InvalidSamples string `json:"invalidSamples,omitempty"`
	// Sample is the file with the resource on which the behaviours are tried. The operator must be able to fulfil the
	// resource's spec. Only the file's first object is used.
	//
	// In this object and in those of Samples, InvalidSamples and Prepare, in the strings in Values, in all patches, and in
	// each child's Applied, {{.Namespace}} stands for the name of the trial's namespace.
	Sample string `json:"sample"`
	// Webhooks are files and folders with the operator's webhook configurations, as controller-gen writes them. During the
	// trials, the kit runs one more operator, which serves the webhooks at 127.0.0.1:{{.WebhookPort}}, with the
	// certificate in {{.CertDir}}. That operator also converts objects whose definitions name a conversion webhook, even
	// if Webhooks is empty, as long as Command or Env contains {{.WebhookPort}}. It sees only a namespace of its own, in
	// which there is nothing to reconcile. If its webhooks look up other objects, make the command start it without
	// controllers where {{.WebhooksOnly}} is true: it may then read all namespaces.
	Webhooks []string `json:"webhooks,omitempty"`
	// Roles are files with Roles and ClusterRoles, or folders with such files. The operator runs with these permissions
	// and no others. Without Roles, it may do anything, and the "least-privilege" behaviour is left out.
	Roles []string `json:"roles,omitempty"`

	// Confine is for an operator that watches all namespaces and can't be restricted to one: the kit redirects the
	// operator's lists and watches of all namespaces to the trial's namespace.
	Confine bool `json:"confine,omitempty"`
	// AllNamespaces means that the operator watches all namespaces if {{.Namespace}} is empty. The "neighbours" behaviour
	// then also tries resources of the same name in two namespaces. An operator with Confine doesn't need this.
	AllNamespaces bool `json:"allNamespaces,omitempty"`
	// Command is the program and its arguments, with the placeholders of [process.Values].
	Command []string `json:"command"`
	// LeaderElection lists arguments that are added to Command in trials with leader election.
	LeaderElection []string `json:"leaderElection,omitempty"`
	// Resync lists arguments that are added to Command in trials in which informers must pass all objects to the handlers
	// again every second. Without them, silent/resync is left out.
	Resync []string `json:"resync,omitempty"`
	// Env lists environment variables that are added to the inherited ones, as NAME=value, with the same placeholders as
	// in Command.
	Env []string `json:"env,omitempty"`
	// Logs is the folder for what the operator prints, with a file for each start. If it is empty, --report keeps these
	// files in logs/ in the report's folder.
	Logs string `json:"logs,omitempty"`
	// Grace is how long the operator may take to exit after SIGTERM, such as 10s. If it is empty, the limit is 30s.
	Grace string `json:"grace,omitempty"`

	// Prepare lists objects that the kit creates for each trial in its namespace, such as a Secret that the sample refers
	// to. The name of a cluster-scoped object must contain {{.Namespace}}, because trials run in parallel.
	Prepare []map[string]any `json:"prepare,omitempty"`
	// Condition is the type of the condition that is True while the resource is in its desired state. If it is empty,
	// the type is Ready.
	Condition string `json:"condition,omitempty"`
	// Converged is for an operator that reports its state without a condition: an expression that is true once the status
	// says that the current spec is fulfilled.
	Converged string `json:"converged,omitempty"`
	// Children are the objects that the operator creates for a resource. It must not leave objects of other kinds behind,
	// except Events and Leases.
	Children []Child `json:"children,omitempty"`
	// MaxWrites is how many writes may take effect by the time a new resource has converged and the operator is at rest.
	// Events and Leases don't count.
	MaxWrites int `json:"maxWrites,omitempty"`
	// Drains means that the operator finishes the queued work and writes its Events before it exits. controller-runtime's
	// manager does neither.
	Drains bool `json:"drains,omitempty"`
	// Values are sensible values for spec fields, keyed by paths such as spec.image, spec.pools[].size or spec.labels.*.
	// For a field without them, the kit generates values from the field's schema.
	Values map[string][]any `json:"values,omitempty"`
	// Ascending lists the paths of fields that can only increase, such as a version: the API server accepts only values that
	// come after the current one in the field's Values.
	Ascending []string `json:"ascending,omitempty"`
	// Immutable lists the paths of fields that can't be changed. The "update" behaviour checks that the API server
	// refuses a change.
	Immutable []string `json:"immutable,omitempty"`
	// Fixed lists the paths of fields that keep the sample's value in all trials, each with the reason.
	Fixed map[string]string `json:"fixed,omitempty"`
	// Required lists the paths of optional fields that have a value in all trials, each with the reason.
	Required map[string]string `json:"required,omitempty"`
	// Unmeetable lists specs that the API server accepts but the operator can't fulfil.
	Unmeetable []Unmeetable `json:"unmeetable,omitempty"`
	// Normalize lists the differences to ignore when two resources with the same spec are compared.
	Normalize []Normalize `json:"normalize,omitempty"`
	// LeftOut lists behaviours, and parts of behaviours such as collision/event, that don't fit the operator, each with
	// the reason, which the report shows. [operatortest.Operator] lists the parts.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	// Seed is the seed for the random specs that the "transitions" behaviour tries. If it is zero, the kit uses 1.
	Seed int64 `json:"seed,omitempty"`
	// MaxPause is the longest time, such as 5s, for which the operator may do nothing although it has something left to
	// do: the interval at which it polls or requeues. If the operator pauses for longer than that, the kit may stop
	// waiting before Timeout.
	MaxPause string `json:"maxPause,omitempty"`
	// Parallel is how many trials may run at the same time, most of them with at least one process of the operator. If it is
	// zero, the environment variable OPERATORTEST_PARALLEL applies, or else there may be 12. A few more trials, whose
	// results others wait for, may run at the same time.
	Parallel int `json:"parallel,omitempty"`
	// Timeout bounds each wait for the operator, such as 30s. If it is empty, the environment variable
	// OPERATORTEST_TIMEOUT applies, or else one minute.
	Timeout string `json:"timeout,omitempty"`
}

// Child is an object that the operator creates for a resource.
type Child struct {
	// APIVersion and Kind identify the object's type, such as apps/v1 and Deployment.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is a CEL expression for the child's name. Without it, the child has the resource's own name. If the expression
	// can't be evaluated, or its value is empty or not a string, the resource has no such child. For the sample, the value
	// must be a string.
	Name string `json:"name,omitempty"`
	// Generated means that no expression can give the name. The child is then the only object of its kind that the
	// resource controls and that has Labels, which distinguish it from other children of its kind.
	Generated bool              `json:"generated,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Unowned means that the operator sets no controller reference on the child, and deletes the child itself. A
	// cluster-scoped child of a namespaced resource needs no Unowned.
	Unowned bool `json:"unowned,omitempty"`
	// Retained means that the child outlives the resource on purpose: after the resource's deletion, the same object must
	// still exist.
	Retained bool `json:"retained,omitempty"`
	// Drift contains JSON merge patches that the operator must undo; each key describes its patch. A list in a merge patch
	// replaces the whole old list.
	Drift map[string]map[string]any `json:"drift,omitempty"`
	// Foreign contains JSON merge patches to fields that belong to others; the operator must leave these fields alone.
	Foreign map[string]map[string]any `json:"foreign,omitempty"`
	// Applied contains parts of the child that others add with server-side apply, and that the operator must leave alone.
	Applied map[string]map[string]any `json:"applied,omitempty"`
}

// Unmeetable is a spec that the operator can't fulfil.
type Unmeetable struct {
	// Name completes "a resource whose …".
	Name string `json:"name"`
	// Patch is a JSON merge patch of the sample.
	Patch map[string]any `json:"patch"`
	// Prepare lists the objects that block the operator.
	Prepare []map[string]any `json:"prepare,omitempty"`
}

// Normalize says what to ignore in the objects of one kind, because it differs even between two resources with the same
// spec.
type Normalize struct {
	// Kind is the kind of these objects: the resource's own, or a child's.
	Kind string `json:"kind"`
	// Fields are JSON pointers (RFC 6901), such as /data/password.
	Fields []string `json:"fields,omitempty"`
	// Name means that the object's name is generated.
	Name bool `json:"name,omitempty"`
}

// Load reads a file. Its errors name the file, and the field if one is wrong. logs is the folder for what the operator
// prints, if the file doesn't name one; if both are empty, the output is not kept.
func Load(path, logs string) (operatortest.Operator, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return operatortest.Operator{}, fmt.Errorf("there is no %s: write one, or name another file with --file", path)
	}
	if err != nil {
		return operatortest.Operator{}, err
	}
	file := &File{}
	if err := yaml.UnmarshalStrict(content, file); err != nil {
		return operatortest.Operator{}, fmt.Errorf("read %s: %w", path, manifest.ExplainYAML(err, content))
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return operatortest.Operator{}, err
	}
	if file.Logs == "" && logs != "" {
		if file.Logs, err = filepath.Abs(logs); err != nil {
			return operatortest.Operator{}, err
		}
	}
	operator, err := file.Operator(dir)
	if err != nil {
		return operatortest.Operator{}, fmt.Errorf("%s: %w", path, err)
	}
	return operator, nil
}

// Operator returns the operator that the file describes. Paths in the file are relative to the folder dir.
func (f *File) Operator(dir string) (operatortest.Operator, error) {
	made := operatortest.Operator{
		Condition: f.Condition, MaxWrites: f.MaxWrites, Drains: f.Drains, Values: f.Values, Ascending: f.Ascending, Immutable: f.Immutable,
		Confine: f.Confine, AllNamespaces: f.AllNamespaces, Fixed: f.Fixed, Required: f.Required, LeftOut: f.LeftOut, Seed: f.Seed, Parallel: f.Parallel, Sample: inside(dir, f.Sample), Samples: inside(dir, f.Samples), InvalidSamples: inside(dir, f.InvalidSamples),
	}
	for _, path := range f.CRDs {
		made.CRDs = append(made.CRDs, inside(dir, path))
	}
	for _, path := range f.Webhooks {
		made.Webhooks = append(made.Webhooks, inside(dir, path))
	}
	if len(f.CRDs) == 0 || f.Sample == "" || len(f.Command) == 0 {
		return made, errors.New("crds, sample and command are required")
	}
	var err error
	if made.Roles, err = roleFiles(dir, f.Roles); err != nil {
		return made, err
	}
	if made.Timeout, err = duration("timeout", f.Timeout); err != nil {
		return made, err
	}
	if made.MaxPause, err = duration("maxPause", f.MaxPause); err != nil {
		return made, err
	}
	if f.Parallel < 0 {
		return made, fmt.Errorf("parallel: %d is not a positive number", f.Parallel)
	}
	grace, err := duration("grace", f.Grace)
	if err != nil {
		return made, err
	}
	command := process.Command{
		Args: f.Command, LeaderElection: f.LeaderElection, Resync: f.Resync, Env: f.Env, Dir: dir, Logs: inside(dir, f.Logs), Grace: grace,
	}
	if err := command.Check(); err != nil {
		return made, fmt.Errorf("command: %w", err)
	}
	if len(f.Resync) == 0 {
		made.LeftOut = with(f.LeftOut, trial.Resync, "the file lists no arguments under resync")
	}
	made.Run, made.ServesWebhooks, made.WebhooksOnly = command.Run, command.ServesWebhooks(), command.WebhooksOnly()
	if len(f.Webhooks) > 0 && !made.ServesWebhooks {
		return made, errors.New("webhooks: command must tell the operator where to serve them, for example with --webhook-port={{.WebhookPort}} and --webhook-cert-path={{.CertDir}}")
	}
	sample, err := manifest.Read(made.Sample)
	if err != nil {
		return made, fmt.Errorf("sample: %w", err)
	}
	if f.Prepare != nil {
		made.Prepare = creator(f.Prepare)
	}
	if f.Converged != "" {
		if made.Converged, err = converged(f.Converged); err != nil {
			return made, fmt.Errorf("converged: %w", err)
		}
	}
	for i, declared := range f.Children {
		child, err := declared.child(sample[0])
		if err != nil {
			return made, fmt.Errorf("children[%d]: %w", i, err)
		}
		made.Children = append(made.Children, child)
	}
	for _, unmeetable := range f.Unmeetable {
		patch, err := encode(unmeetable.Patch)
		if err != nil {
			return made, fmt.Errorf("unmeetable %q: %w", unmeetable.Name, err)
		}
		added := operatortest.Unmeetable{Name: unmeetable.Name, Patch: patch}
		if unmeetable.Prepare != nil {
			added.Prepare = creator(unmeetable.Prepare)
		}
		made.Unmeetable = append(made.Unmeetable, added)
	}
	made.Normalize, err = normalizer(f.Normalize)
	return made, err
}

func (c Child) child(sample *unstructured.Unstructured) (operatortest.Child, error) {
	version, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil || c.Kind == "" || c.APIVersion == "" {
		return operatortest.Child{}, fmt.Errorf("apiVersion %q and kind %q don't name a kind", c.APIVersion, c.Kind)
	}
	made := operatortest.Child{Kind: version.WithKind(c.Kind), Generated: c.Generated, Labels: c.Labels, Unowned: c.Unowned, Retained: c.Retained}
	if err := trial.CheckChild(made); err != nil {
		return made, errors.New(words("", err.Error()))
	}
	if c.Name != "" {
		if made.Name, err = nameOf(c.Name, sample); err != nil {
			return made, fmt.Errorf("name: %w", err)
		}
	}
	if made.Drift, err = patches(c.Drift); err != nil {
		return made, err
	}
	if made.Foreign, err = patches(c.Foreign); err != nil {
		return made, err
	}
	made.Applied, err = patches(c.Applied)
	return made, err
}

// creator returns a function that creates the objects for a trial, in the trial's namespace unless they are
// cluster-scoped. The name of a cluster-scoped object must contain {{.Namespace}}, because trials run in parallel.
func creator(objects []map[string]any) func(context.Context, client.Client, string) error {
	return func(ctx context.Context, writer client.Client, namespace string) error {
		for _, object := range objects {
			made := &unstructured.Unstructured{Object: manifest.FillFields(object, namespace)}
			what := made.GetKind() + " " + made.GetName()
			namespaced, err := writer.IsObjectNamespaced(made)
			if err != nil {
				return fmt.Errorf("find the kind of %s: %w", what, err)
			}
			if namespaced {
				made.SetNamespace(namespace)
			} else if made.SetNamespace(""); !strings.Contains(made.GetName(), namespace) {
				return fmt.Errorf("%s is cluster-scoped, so its name must contain %s: otherwise the trials, which run in parallel, would share it", what, manifest.Placeholder)
			}
			if err := writer.Create(ctx, made); err != nil {
				return fmt.Errorf("create %s: %w", what, manifest.Explain(err, made))
			}
		}
		return nil
	}
}

func duration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed <= 0 {
		return 0, fmt.Errorf("%s: %q is not a positive duration such as 30s", field, text)
	}
	return parsed, nil
}

// inside joins the folder and a relative path. An empty or absolute path is returned unchanged.
func inside(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
