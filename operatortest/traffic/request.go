package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is one request to the API server: the attributes that RBAC checks, and the result.
type Request struct {
	// Verb is the verb in a role's rules: get, list, watch, create, update, patch, delete or deletecollection. For a URL
	// that is not a resource, it is the HTTP method in lower case.
	Verb string
	// Group, Version and Resource are empty for URLs that are not resources, such as /version.
	Group, Version, Resource, Subresource string
	// Namespace and Name are empty if the request names none. The Name of a new object comes from the request's body; a star
	// follows it if the API server generates the rest. The Name of a list, watch or deletecollection comes from its field
	// selector.
	Namespace, Name string
	// Lists marks a watch that begins with all existing objects, in place of a list.
	Lists bool
	// Applies marks a server-side apply.
	Applies bool
	// DryRun marks a write that the API server validates but doesn't store. It doesn't mark a deletion that requests a dry
	// run in its body, which the Tap doesn't read.
	DryRun bool
	// Confined means that the operator asked for all namespaces, and [Tap.Confine] showed it only Namespace or, if Namespace
	// is empty, only those given to Confine.
	Confined bool
	// Past is the revision at which [Tap.ShowPast] made the API server answer a list, instead of the current one. It is
	// empty if ShowPast didn't change the request.
	Past string
	// Path is the URL's path.
	Path string

	// At is when the request was made, measured from the Tap's creation.
	At time.Duration
	// Status is the HTTP reply's status, or 0 if there has been no reply.
	Status int
	// Note says why the operator got no reply. It is empty if the operator got one, or is still waiting for it, or if it
	// cancelled a request to which Action.Delay applied.
	Note string
	// Canceled means that the operator cancelled the request before its reply. It isn't set if Action.Delay applied.
	Canceled bool
	// Done means that the request has ended. A watch counts as done when its reply begins.
	Done bool
	// Unchanged means that a server-side apply has changed nothing: the API server has stored no new version of the object,
	// and watches show no event. It is only set if the Tap can read objects: see [Tap.ReadBefore].
	Unchanged bool

	// apply is set once a server-side apply has succeeded, if the Tap could read the object before it.
	apply *apply
}

// IsWrite reports whether the request is meant to change what the API server stores.
// A dry run isn't; neither is a review in the API groups for authentication and authorization, such as a
// SubjectAccessReview, which is created but only asks a question.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return r.Resource != "" && !r.DryRun && r.Group != "authentication.k8s.io" && r.Group != "authorization.k8s.io"
	}
	return false
}

// IsEvent reports whether the request is for Events, of either API group.
func (r Request) IsEvent() bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// IsLease reports whether the request is for Leases, which leader election uses.
func (r Request) IsLease() bool { return r.Resource == "leases" && r.Group == "coordination.k8s.io" }

// Kind returns the verb and the resource, such as "patch foos.example.com/status", or the verb and the path of a URL
// that is not a resource.
func (r Request) Kind() string {
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return r.Verb + " " + resource
}

// Target returns the namespace/name of the request's object, or only the name if the request names no namespace. The
// name is empty for most lists and watches.
func (r Request) Target() string {
	if r.Namespace != "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Name
}

// Result describes the outcome of the request.
func (r Request) Result() string {
	result := "no reply yet"
	if r.Status != 0 {
		result = fmt.Sprint(r.Status)
	}
	if r.Unchanged {
		result += ", nothing changed"
	}
	if r.Past != "" {
		result += ", as of revision " + r.Past
	}
	if r.Note != "" {
		result += ", " + r.Note
	}
	return result
}

// String returns a line of a request log.
func (r Request) String() string {
	return fmt.Sprintf("%7.3fs  %s %s: %s", r.At.Seconds(), r.Kind(), r.Target(), r.Result())
}

// parse describes an HTTP request to the API server. If the path of a create request contains no name, parse reads the
// body to find the name, and puts the body back.
func parse(request *http.Request) (Request, error) {
	parsed := Request{Path: request.URL.Path}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parsed.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parsed.Group, parsed.Version, parts = parts[1], parts[2], parts[3:]
	default:
		parsed.Verb = strings.ToLower(request.Method)
		return parsed, nil
	}
	// What follows a namespace's name can also be a subresource of the Namespace, instead of a resource in it.
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parsed.Namespace, parts = parts[1], parts[2:]
	}
	parsed.Resource = parts[0]
	if len(parts) > 1 {
		parsed.Name = parts[1]
	}
	if len(parts) > 2 {
		parsed.Subresource = parts[2] // the rest is a path inside the subresource, for example a proxy's
	}
	parsed.Verb = verbOf(request, parsed.Name != "")
	parsed.Applies = parsed.Verb == "patch" && isApply(request.Header.Get("Content-Type"))
	parsed.DryRun = request.URL.Query().Has("dryRun")
	parsed.Lists = parsed.Verb == "watch" && request.URL.Query().Get("sendInitialEvents") == "true"
	if parsed.Name == "" && parsed.Verb != "create" {
		parsed.Name = selectedName(request)
	}
	if parsed.Verb != "create" || parsed.Name != "" {
		return parsed, nil
	}
	name, err := nameInBody(request)
	parsed.Name = name
	return parsed, err
}

func verbOf(request *http.Request, named bool) string {
	watch := request.URL.Query().Get("watch")
	switch {
	case request.Method == http.MethodGet && (watch == "true" || watch == "1"):
		return "watch"
	case request.Method == http.MethodGet && named:
		return "get"
	case request.Method == http.MethodGet:
		return "list"
	case request.Method == http.MethodDelete && !named:
		return "deletecollection"
	case request.Method == http.MethodPost:
		return "create"
	case request.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(request.Method)
}

// isApply reports whether a patch of this media type is a server-side apply.
func isApply(contentType string) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	return media == string(types.ApplyYAMLPatchType) || media == string(types.ApplyCBORPatchType)
}

// selectedName returns the name to which a list, watch or deletecollection is restricted, or "". A role may allow these
// verbs for one name.
func selectedName(request *http.Request) string {
	selector, err := fields.ParseSelector(request.URL.Query().Get("fieldSelector"))
	if err != nil {
		return "" // the API server refuses it
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

func nameInBody(request *http.Request) (string, error) {
	if request.Body == nil {
		return "", nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "", fmt.Errorf("read the body of a request: %w", err)
	}
	_ = request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(body))
	name, generated := namesIn(body)
	if name == "" && generated != "" {
		return generated + "*", nil
	}
	return name, nil
}

// namesIn returns an object's metadata.name and metadata.generateName. They are empty if the body can't be read; the
// log then shows no name. Go clients may send objects of Kubernetes' own kinds in protobuf, but never custom resources.
func namesIn(body []byte) (name, generateName string) {
	var object struct {
		Metadata struct{ Name, GenerateName string }
	}
	if json.Unmarshal(body, &object) == nil {
		return object.Metadata.Name, object.Metadata.GenerateName
	}
	decoded, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
	if err != nil {
		return "", ""
	}
	named, ok := decoded.(metav1.ObjectMetaAccessor)
	if !ok {
		return "", ""
	}
	metadata := named.GetObjectMeta()
	return metadata.GetName(), metadata.GetGenerateName()
}
