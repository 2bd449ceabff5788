package v1_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	secretv1 "example.com/operator-workshop/05-webhook-password/api/v1"
)

var servedPaths = []string{mutatePath, validatePath, convertPath}

// FuzzAdmission sends arbitrary requests to the webhook server's handlers. No request may cause a panic, an admission
// request may pass only if mayAllow accepts it, no patch may change more than spec.secretName, and a successful
// conversion must return all objects in the requested version.
func FuzzAdmission(f *testing.F) {
	log.SetLogger(logr.Discard()) // controller-runtime logs each bad request
	handlers, err := newHandlers()
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range seeds(NewWithT(f)) {
		for path := range servedPaths {
			f.Add(uint8(path), jsonType, body)
		}
	}
	f.Add(uint8(1), "application/json; charset=utf-8", []byte("{}"))
	f.Fuzz(func(t *testing.T, path uint8, contentType string, body []byte) {
		served := servedPaths[int(path)%len(servedPaths)]
		answer := post(handlers, served, contentType, body)
		text := answer.Body.String()
		if strings.Contains(text, "panic") || strings.Contains(text, "internal error occurred") {
			t.Fatalf("%s panics and recovers: %s", served, text)
		}
		if answer.Code != http.StatusOK {
			return
		}
		if served == convertPath {
			expectConversion(t, body, answer.Body.Bytes())
			return
		}
		expectVerdict(t, body, answer.Body.Bytes(), mayAllow(contentType, body, served == validatePath))
	})
}

// seeds returns the requests of all cases, some conversions, and inputs that are almost requests.
func seeds(g Gomega) [][]byte {
	bodies := [][]byte{nil, []byte("{}"), []byte("null"), []byte("[]"), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)}
	add := func(object any) {
		body, err := json.Marshal(object)
		g.Expect(err).NotTo(HaveOccurred())
		bodies = append(bodies, body)
	}
	admissionReview := metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}
	for _, c := range cases() {
		request := requestOf(g, c)
		add(admissionv1.AdmissionReview{TypeMeta: admissionReview, Request: request})
		request.Kind.Kind = "Secret"
		add(admissionv1.AdmissionReview{TypeMeta: admissionReview, Request: request})
	}
	add(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1beta1", Kind: "AdmissionReview"}, Request: requestOf(g, cases()["the defaults"])})
	for _, pair := range [][2]string{{"v1", "v1alpha1"}, {"v1alpha1", "v1"}, {"v1", "v1"}} {
		object := fmt.Sprintf(`{"apiVersion":"secret.example.com/%s","kind":"Password","metadata":{"name":"login","annotations":{"secret.example.com/v1-spec":"{}"}},"spec":{"length":9,"policy":{"length":9}}}`, pair[0])
		bodies = append(bodies, fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"secret.example.com/%s","objects":[%s]}}`, pair[1], object))
	}
	return bodies
}

func expectVerdict(t *testing.T, body, answer []byte, mayAllow bool) {
	t.Helper()
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &answered); err != nil || answered.Response == nil {
		t.Fatalf("the answer is not an AdmissionReview (%v): %s", err, answer)
	}
	if answered.Response.Allowed && !mayAllow {
		t.Fatalf("the webhook should not allow this request, see oracle_test.go: %s", answer)
	}
	if len(answered.Response.Patch) > 0 {
		expectDefault(t, body, answered.Response.Patch)
	}
}

// expectDefault checks that the patch changes only spec.secretName.
func expectDefault(t *testing.T, body, patch []byte) {
	t.Helper()
	var asked admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &asked); err != nil {
		return // the handler ignores what follows the review
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("the patch can't be read (%v): %s", err, patch)
	}
	content, err := operations.Apply(asked.Request.Object.Raw)
	if err != nil {
		t.Fatalf("the patch can't be applied (%v): %s", err, patch)
	}
	var before, after secretv1.Password
	if err := errors.Join(json.Unmarshal(asked.Request.Object.Raw, &before), json.Unmarshal(content, &after)); err != nil {
		t.Fatalf("the object can't be read (%v) after the patch: %s", err, patch)
	}
	before.Spec.SecretName = after.Spec.SecretName
	if !equality.Semantic.DeepEqual(before, after) {
		t.Fatalf("the patch must change spec.secretName only: %s", patch)
	}
}

// expectConversion checks that the answer is an error, or contains all objects in the requested version.
func expectConversion(t *testing.T, body, answer []byte) {
	t.Helper()
	var asked, answered apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer, &answered); err != nil || answered.Response == nil {
		t.Fatalf("the answer is not a ConversionReview (%v): %s", err, answer)
	}
	if answered.Response.Result.Status != metav1.StatusSuccess {
		return
	}
	if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
		return // the handler ignores what follows the review
	}
	if len(answered.Response.ConvertedObjects) != len(asked.Request.Objects) {
		t.Fatalf("%d objects were sent, but %d were returned", len(asked.Request.Objects), len(answered.Response.ConvertedObjects))
	}
	for _, object := range answered.Response.ConvertedObjects {
		var found metav1.TypeMeta
		if err := json.Unmarshal(object.Raw, &found); err != nil {
			t.Fatalf("a converted object can't be read: %v", err)
		}
		if found.APIVersion != asked.Request.DesiredAPIVersion || found.Kind != "Password" {
			t.Fatalf("%s was requested, but %s was returned", asked.Request.DesiredAPIVersion, found)
		}
	}
}
