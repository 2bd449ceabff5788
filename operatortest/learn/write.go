package learn

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/operatortest/config"
)

// maxListed is the largest number of fields that a comment names.
const maxListed = 12

// page contains the data for the file's template.
type page struct {
	config.File
	Kind     string
	Verdict  verdict
	Children []child
	Writes   []string
	Unknown  []unknown
	// OtherRoles lists files with roles that are not the operator's.
	OtherRoles []string
	// Gone lists objects that the operator created and that had been deleted, or were being deleted, at the end.
	Gone []string
	// Unmet describes the conditions that were not True at the end. The file shows them only if no condition was True
	// and the status had neither a phase nor a state.
	Unmet []string
}

// unknown is a field of the spec whose schema says too little to generate other values.
type unknown struct {
	Path  string
	Value string
}

// Elects reports whether one of the command's arguments is about leader election.
func (p page) Elects() bool {
	return slices.ContainsFunc(p.Command, func(argument string) bool { return strings.Contains(argument, "leader-elect") })
}

func (c child) APIVersion() string { return c.kind.GroupVersion().String() }
func (c child) Kind() string       { return c.kind.Kind }
func (c child) Generated() bool    { return len(c.name) == 0 && c.second != nil }
func (c child) Once() bool         { return c.second == nil }

// Name returns the likeliest expression for the child's name. If there is none, for example because only one run
// created the child, Name returns the expression that means "no such child".
func (c child) Name() string {
	if len(c.name) == 0 {
		return `""`
	}
	return c.name[0]
}

// Fits returns all expressions for the child's name except the likeliest one and the literal name.
func (c child) Fits() string {
	expressions := c.expressions()
	if len(expressions) == 0 {
		return ""
	}
	return strings.Join(expressions[1:], ", ")
}

// Shared reports whether the name depends on no field of the resource but its namespace.
func (c child) Shared() bool {
	distinguishes := func(expression string) bool { return !strings.Contains(expression, "object.metadata.namespace") }
	return !slices.ContainsFunc(c.expressions(), distinguishes)
}

// expressions returns the expressions for the child's name that contain a field, the likeliest first.
func (c child) expressions() []string {
	isName := func(expression string) bool { return expression == strconv.Quote(c.first.GetName()) }
	return slices.DeleteFunc(slices.Clone(c.name), isName)
}

// Lacks reports whether no object controls the child, although it could have a controller reference to its resource.
func (c child) Lacks() bool {
	return !c.above && !slices.ContainsFunc(c.first.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.Controller != nil && *owner.Controller })
}

// NotOwned returns the fields that the operator doesn't own, at most maxListed of them.
func (c child) NotOwned() string {
	_, others := split(c.first)
	var names []string
	for _, path := range others {
		names = append(names, strings.Join(path, "."))
	}
	if len(names) > maxListed {
		names = append(names[:maxListed], "…")
	}
	return strings.Join(names, ", ")
}

var fileTemplate = template.Must(template.New("operatortest.yaml").Funcs(template.FuncMap{"yaml": inline}).Parse(
	`# Written by "operatortest learn" from two runs of the operator. It says what the operator did, which may not be what it should do:
# correct it before you use it.
crds: {{yaml .CRDs}}
sample: {{yaml .Sample}}
{{- if .Webhooks}}
webhooks: {{yaml .Webhooks}}
{{- end}}
{{- if .Roles}}
roles: {{yaml .Roles}}
{{- with .OtherRoles}}
# Left out, because no binding gives the roles in these files to a ServiceAccount, or because the roles' names show that they are for users: {{range $i, $role := .}}{{if $i}}, {{end}}{{$role}}{{end}}
{{- end}}
{{- else}}
# Without roles, the operator may do everything, and no behaviour checks whether its roles suffice.
# roles: [config/rbac]
{{- end}}
{{- if .Confine}}
# The operator watches all namespaces. The trials run in parallel, each in its own namespace, so the kit shows the operator
# only that one. If the operator has a setting for one namespace, set it to {{"{{"}}.Namespace{{"}}"}} instead.
confine: true
{{- end}}
command: {{yaml .Command}}
{{- if not .Elects}}

# The operator was started without leader election. Give the arguments for it, or say why the operator has none:
# leaderElection: [--leader-elect, "--leader-election-namespace={{"{{"}}.LeaseNamespace{{"}}"}}"]
# leftOut:
#   failover: it has no leader election
{{- end}}
{{with .Verdict}}
{{- if .Condition}}
condition: {{yaml .Condition}} # True in the end
{{- else if .Expression}}
# No condition was True in the end, so this expression describes the status when the operator had finished its work.
converged: {{yaml .Expression}}
{{- else}}
# In the end, the status had no condition that was True, and neither a phase nor a state.
{{- range $.Unmet}}
#   {{.}}
{{- end}}
{{- if $.Unmet}}
# Find out why before you go on: the operator had probably not finished, so this file describes only a part of its work.
{{- end}}
# Write an expression that is true when the status says that the spec is met:
# converged: object.status.ready == true
{{- end}}
{{- if not .Observed}}
# Nothing in the status says which generation it is about, so it may be about an older spec: set observedGeneration.
{{- end}}
{{- end}}
{{if .Children}}
children:
{{- range .Children}}
- apiVersion: {{yaml .APIVersion}}
  kind: {{yaml .Kind}}
  {{- if .Once}}
  # Only one of the two runs left this object, {{.First}}: correct the name, or find out why.
  {{- else if .Generated}}
  # The name is generated, such as {{.First}}: the kit takes the one object of this kind
  {{- if .Labels}} and with these labels
  {{- end}} that the {{$.Kind}} controls.
  {{- if not .Labels}} If it controls
  # several, tell them apart:
  # labels: {app: web}
  {{- end}}
  {{- else if .Shared}}
  # The name depends neither on the {{$.Kind}}'s name nor on its spec: two of them in one namespace would share the object.
  {{- end}}
  {{- if .Generated}}
  generated: true
  {{- with .Labels}}
  labels: {{yaml .}}
  {{- end}}
  {{- else}}
  name: {{yaml .Name}}{{with .Fits}} # or: {{.}}{{end}}
  {{- end}}
  {{- if .Lacks}}
  # This object lacks a controller reference to the {{$.Kind}}. Set one, or say that the operator deletes the object itself
  # (unowned: true) or that the object outlives the {{$.Kind}} on purpose (retained: true).
  {{- end}}
  {{- with .NotOwned}}
  # The operator does not own the following fields. If others may change one of them, add it to foreign: {{.}}
  {{- end}}
  {{- if .Drift}}
  drift:
  {{- range .Drift}}
    {{yaml .What}}: {{yaml .Patch}}{{if .Default}} # the field has its default value: remove this patch if the operator does not set the field{{end}}
  {{- end}}
  {{- else}}
  # No simple field was found that the API server lets you change. Add a patch that the operator must undo:
  # drift: {another size: {spec: {size: 2}}}
  {{- end}}
{{- end}}
{{- else}}
# The operator created no object that existed in the end, except Events and Leases.
# children: []
{{- end}}
{{- with .Gone}}
# Some objects were created and deleted again while the operator ran. The trials compare only what exists in the end, so don't
# declare these as children: {{range $i, $object := .}}{{if $i}}, {{end}}{{$object}}{{end}}
{{- end}}
maxWrites: {{.MaxWrites}} # {{range $i, $write := .Writes}}{{if $i}}, {{end}}{{$write}}{{end}}
{{- if .Normalize}}

# These fields differed between the two runs. The kit ignores them, so make sure that each of them must differ.
normalize:
{{- range .Normalize}}
- kind: {{yaml .Kind}}
  {{- with .Fields}}
  fields: {{yaml .}}
  {{- end}}
{{- end}}
{{- end}}
{{- if .Unknown}}

# The schema says too little about these fields to generate other values. Add a second valid value to each:
# values:
{{- range .Unknown}}
#   {{yaml .Path}}: [{{yaml .Value}}]
{{- end}}
{{- end}}

# How long may the operator do nothing because it polls or requeues? If the kit knows that, it needn't wait a minute for an
# operator that has stopped working:
# maxPause: 5s
`))

// First returns the object's name in the first run that created it.
func (c child) First() string { return c.first.GetName() }

func (p page) render() ([]byte, error) {
	var text bytes.Buffer
	if err := fileTemplate.Execute(&text, p); err != nil {
		return nil, fmt.Errorf("write the description: %w", err)
	}
	return text.Bytes(), nil
}

// inline writes a value as YAML on one line.
func inline(value any) (string, error) {
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return "", err
	}
	flow(node)
	content, err := yaml.Marshal(node)
	return strings.TrimSpace(string(content)), err
}

func flow(node *yaml.Node) {
	switch {
	case node.Kind != yaml.ScalarNode:
		node.Style = yaml.FlowStyle
	case strings.ContainsAny(node.Value, "\n"):
		node.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range node.Content {
		flow(inner)
	}
}
