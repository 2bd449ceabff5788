// Package learn runs an operator twice, and drafts operatortest.yaml from what the operator did. A person then
// corrects the draft.
package learn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/operatortest/config"
	"example.com/operator-workshop/operatortest/internal/manifest"
	"example.com/operator-workshop/operatortest/internal/trial"
	"example.com/operator-workshop/operatortest/testcluster"
)

// Options contains what is known about an operator before it has run. Paths, except those in the arguments of Command,
// are relative to the working directory.
type Options struct {
	CRDs, Roles, Webhooks []string
	Sample                string
	// Command is the program and its arguments, with the placeholders of process.Values. It runs in Dir, so paths in the
	// arguments are relative to Dir.
	Command []string
	// Dir is the folder of the file to be written; the paths in that file are relative to it.
	Dir string
	// Timeout bounds the wait for the operator to come to rest.
	Timeout time.Duration
}

// Check returns an error if CRDs, Sample or Command is empty, if Timeout isn't positive, or if Sample's first object is
// not of a kind that CRDs define.
func (o Options) Check() error {
	switch {
	case len(o.CRDs) == 0:
		return errors.New("use --crd to name the files or folders with the CustomResourceDefinitions")
	case o.Sample == "":
		return errors.New("use --sample to name a file with a resource whose spec the operator can fulfil")
	case len(o.Command) == 0:
		return errors.New(`after "--", give the command that starts the operator, such as: -- ./manager "--namespace={{.Namespace}}"`)
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %s: give a positive duration, such as 60s", o.Timeout)
	}
	objects, err := manifest.Read(o.Sample)
	if err != nil {
		return err
	}
	found, err := defines(o.CRDs, objects[0])
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s has the kind %s of %s, which no definition in %s defines: use --crd to name the folder of its definition",
			o.Sample, objects[0].GetKind(), objects[0].GetAPIVersion(), strings.Join(o.CRDs, ", "))
	}
	return nil
}

// defines reports whether the files and folders contain a CRD that serves the kind and version of an object.
func defines(paths []string, object *unstructured.Unstructured) (bool, error) {
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return false, fmt.Errorf("--crd: %w", err)
		} else if info.IsDir() {
			if files, err = manifest.Files(path); err != nil {
				return false, err
			}
		}
		for _, file := range files {
			definitions, err := manifest.Read(file)
			if err != nil {
				return false, err
			}
			if slices.ContainsFunc(definitions, func(definition *unstructured.Unstructured) bool { return isOf(definition, object) }) {
				return true, nil
			}
		}
	}
	return false, nil
}

func isOf(definition, object *unstructured.Unstructured) bool {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if definition.GetKind() != "CustomResourceDefinition" || runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, typed) != nil {
		return false
	}
	kind := object.GroupVersionKind()
	return typed.Spec.Group == kind.Group && typed.Spec.Names.Kind == kind.Kind &&
		slices.ContainsFunc(typed.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return version.Name == kind.Version && version.Served
		})
}

// Learn runs the operator twice and returns the content of an operatortest.yaml.
func Learn(ctx context.Context, options Options) (content []byte, err error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	own, others, err := rolesOf(options.Roles)
	if err != nil {
		return nil, err
	}
	options.Roles = own
	file, err := options.file()
	if err != nil {
		return nil, err
	}
	output, err := os.MkdirTemp("", "operatortest-learn-")
	if err != nil {
		return nil, fmt.Errorf("create the folder of the operator's logs: %w", err)
	}
	defer os.RemoveAll(output)
	running := file
	running.Logs, running.Timeout = output, options.Timeout.String()
	operator, err := running.Operator(options.Dir)
	if err != nil {
		return nil, err
	}
	operator.Confine = true // otherwise it would also see the other run's resource
	cluster := &testcluster.Cluster{CRDs: operator.CRDs, Webhooks: operator.Webhooks, Converts: operator.ServesWebhooks}
	if err := cluster.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	runner, err := trial.NewRunner(ctx, operator, cluster)
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	defer func() { err = errors.Join(err, runner.WaitAllEnded(ctx)) }()
	first, err := observe(ctx, runner, "first run", output)
	if err != nil {
		return nil, err
	}
	second, err := observe(ctx, runner, "second run", output)
	if err != nil {
		return nil, err
	}
	undescribed, err := unknownFields(ctx, runner)
	if err != nil {
		return nil, err
	}
	described := describe(file, first, second, undescribed)
	for _, path := range others {
		described.OtherRoles = append(described.OtherRoles, filepath.Base(path))
	}
	return described.render()
}

// file returns an operatortest.yaml with only the fields that the options determine. Relative paths become relative to
// Dir.
func (o Options) file() (config.File, error) {
	made := config.File{Command: slices.Clone(o.Command)}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return made, err
	}
	relative := func(path string) string {
		if absolute, absErr := filepath.Abs(path); absErr == nil && !filepath.IsAbs(path) {
			path, absErr = filepath.Rel(dir, absolute)
			err = errors.Join(err, absErr)
		}
		return path
	}
	for _, path := range o.CRDs {
		made.CRDs = append(made.CRDs, relative(path))
	}
	for _, path := range o.Webhooks {
		made.Webhooks = append(made.Webhooks, relative(path))
	}
	for _, path := range o.Roles {
		made.Roles = append(made.Roles, relative(path))
	}
	made.Sample = relative(o.Sample)
	if strings.Contains(made.Command[0], "/") {
		made.Command[0] = relative(made.Command[0])
		if !strings.Contains(made.Command[0], "/") {
			made.Command[0] = "./" + made.Command[0] // otherwise it would be looked up on the PATH
		}
	}
	return made, err
}

// describe compares two runs, and returns what the file will say about the operator.
func describe(file config.File, first, second run, undescribed []unknown) page {
	children := pair(first, second)
	for i := range children {
		if at := slices.Index(first.children, children[i].first); at >= 0 {
			children[i].Drift = first.drift[at]
		}
		children[i].above = children[i].first.GetNamespace() == "" && first.resource.GetNamespace() != ""
	}
	file.Normalize = rules(first, second, children)
	most := first
	if len(second.writes) > len(first.writes) {
		most = second
	}
	file.MaxWrites, file.Confine = len(most.writes), first.confined
	made := page{File: file, Kind: first.resource.GetKind(), Verdict: verdictOf(first.resource), Unmet: unmet(first.resource), Children: children, Gone: first.gone, Unknown: undescribed}
	times := map[string]int{}
	for _, write := range most.writes {
		times[write.Kind()]++
	}
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		made.Writes = append(made.Writes, fmt.Sprintf("%d × %s", times[kind], kind))
	}
	return made
}

// unknownFields returns the string fields in the sample whose schema says too little to generate other values.
func unknownFields(ctx context.Context, runner *trial.Runner) ([]unknown, error) {
	specs, err := runner.Specs(ctx)
	if err != nil {
		return nil, err
	}
	var found []unknown
	_, paths := specs.Changes()
	for _, path := range paths {
		if text, _, _ := unstructured.NestedString(map[string]any{"spec": specs.Base}, strings.Split(path, ".")...); text != "" {
			found = append(found, unknown{path, text})
		}
	}
	return found, nil
}
