package doks_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
)

// documentVariable is the environment variable with the path of a copy of DigitalOcean's OpenAPI document, reduced to
// the emulator's calls. If it is set, the API's responses in tests that use newLab are checked against the document's
// schemas.
const documentVariable = "DOKS_OPENAPI"

// contract checks responses against the document. It is nil without a document.
var contract *agreement

// agreement checks responses, and remembers which it has seen.
type agreement struct {
	document *openapi3.T

	mu   sync.Mutex
	seen map[string]int
}

func TestMain(m *testing.M) {
	flag.Parse()
	if path := os.Getenv(documentVariable); path != "" {
		document, err := openapi3.NewLoader().LoadFromFile(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", documentVariable, err)
			os.Exit(1)
		}
		contract = &agreement{document: document, seen: map[string]int{}}
		defineFormats()
	}
	code := m.Run()
	if chosen := flag.Lookup("test.run").Value.String(); code == 0 && chosen == "" && contract != nil {
		code = contract.complete()
	}
	os.Exit(code)
}

// defineFormats defines formats that the document uses and that the library leaves undefined.
func defineFormats() {
	openapi3.DefineStringFormatValidator("uuid", openapi3.NewCallbackValidator(func(text string) error {
		_, err := uuid.Parse(text)
		return err
	}))
	openapi3.DefineStringFormatValidator("cidr", openapi3.NewCallbackValidator(func(text string) error {
		_, err := netip.ParsePrefix(text)
		return err
	}))
	openapi3.DefineStringFormatValidator("email", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringForEmail))
}

// deprecated reports whether the document marks an operation as deprecated. The emulator lacks these operations, for
// example POST …/recycle.
func deprecated(operation *openapi3.Operation) bool { return operation.Deprecated }

// complete prints the successful responses in the document that no test has received: their schemas were never checked.
// It returns the exit status, which is 1 if there are any.
func (a *agreement) complete() int {
	code := 0
	for path, item := range a.document.Paths.Map() {
		for method, operation := range item.Operations() {
			if deprecated(operation) {
				continue
			}
			for status := range operation.Responses.Map() {
				if !strings.HasPrefix(status, "2") || a.seen[method+" "+path+" "+status] > 0 {
					continue
				}
				fmt.Fprintf(os.Stderr, "no test received the answer %s to %s %s\n", status, method, path)
				code = 1
			}
		}
	}
	return code
}

// observe checks the headers of the API's responses, and passes a copy of each response to the contract.
func observe(t *testing.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		copied := &recorder{ResponseWriter: writer, status: http.StatusOK}
		next.ServeHTTP(copied, request) // if the response breaks off, this panics, and the response is not checked
		if !strings.HasPrefix(request.URL.Path, "/v2/") {
			return
		}
		if err := checkHeader(copied.Header()); err != nil {
			t.Errorf("%s %s: %v", request.Method, request.URL, err)
		}
		if err := contract.check(request, copied); err != nil {
			t.Errorf("the OpenAPI document does not allow the answer %d of %s %s: %v\n%s", copied.status, request.Method, request.URL, err, copied.content.String())
		}
	})
}

// recorder keeps a copy of a response.
type recorder struct {
	http.ResponseWriter
	status  int
	content bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(content []byte) (int, error) {
	r.content.Write(content)
	return r.ResponseWriter.Write(content)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// checkHeader checks the headers that every response has.
func checkHeader(header http.Header) error {
	for _, name := range []string{"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"} {
		if _, err := strconv.Atoi(header.Get(name)); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	return nil
}

func (a *agreement) check(request *http.Request, got *recorder) error {
	if a == nil {
		return nil
	}
	path, operation := a.find(request)
	if operation == nil {
		return nil // the document does not contain the call
	}
	expected := operation.Responses.Status(got.status)
	if expected == nil {
		expected = operation.Responses.Default()
	}
	a.mu.Lock()
	a.seen[fmt.Sprintf("%s %s %d", request.Method, path, got.status)]++
	a.mu.Unlock()
	kind := got.Header().Get("Content-Type")
	if got.status == http.StatusBadGateway && kind == "text/html" {
		return nil // it comes from a proxy, which the document doesn't cover
	}
	return checkContent(expected.Value, kind, got.content.Bytes())
}

func checkContent(expected *openapi3.Response, kind string, content []byte) error {
	if len(expected.Content) == 0 {
		if len(content) > 0 || kind != "" {
			return fmt.Errorf("there should be no body, but there is %q (%s)", content, kind)
		}
		return nil
	}
	media := expected.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("the type %q is not among those allowed", kind)
	}
	if media.Schema == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(content, &value); err != nil {
		return err
	}
	return media.Schema.Value.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsResponse(), openapi3.EnableFormatValidation())
}

// find looks up the request's operation by path and method.
func (a *agreement) find(request *http.Request) (string, *openapi3.Operation) {
	parts := strings.Split(request.URL.Path, "/")
	for path, item := range a.document.Paths.Map() {
		pattern := strings.Split(path, "/")
		same := len(parts) == len(pattern)
		for i := 0; same && i < len(pattern); i++ {
			same = pattern[i] == parts[i] || strings.HasPrefix(pattern[i], "{")
		}
		if operation := item.GetOperation(request.Method); same && operation != nil {
			return path, operation
		}
	}
	return "", nil
}
