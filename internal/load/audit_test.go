package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

// auditLines are lines as the API server writes them, without some of the fields that auditEvent lacks. The watch has
// two lines: one for its beginning and one for its end.
const auditLines = `{"kind":"Event","level":"Metadata","auditID":"a","stage":"ResponseStarted","requestURI":"/apis/example.com/v1alpha1/foos?allowWatchBookmarks=true\u0026sendInitialEvents=true\u0026watch=true","verb":"watch","objectRef":{"resource":"foos","apiGroup":"example.com","apiVersion":"v1alpha1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T10:00:01.000000Z","stageTimestamp":"2026-11-21T10:00:01.100000Z"}
{"kind":"Event","level":"Metadata","auditID":"b","stage":"ResponseComplete","requestURI":"/apis/example.com/v1alpha1/namespaces/default/foos/load-1/status?force=true","verb":"patch","objectRef":{"resource":"foos","namespace":"default","name":"load-1","apiGroup":"example.com","apiVersion":"v1alpha1","subresource":"status"},"responseStatus":{"metadata":{},"code":409},"requestReceivedTimestamp":"2026-11-21T10:00:02.500000Z","stageTimestamp":"2026-11-21T10:00:02.600000Z"}
{"kind":"Event","level":"Metadata","auditID":"c","stage":"ResponseComplete","requestURI":"/apis/example.com/v1alpha1?timeout=32s","verb":"get","responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T10:00:03.000000Z"}
{"kind":"Event","level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"/apis/example.com/v1alpha1/foos?watch=true","verb":"watch","objectRef":{"resource":"foos","apiGroup":"example.com","apiVersion":"v1alpha1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-21T10:00:01.000000Z"}
`

func at(second float64) time.Time {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(second * float64(time.Second)))
}

func kinds(requests []request) []string {
	var names []string
	for _, each := range requests {
		names = append(names, each.Kind())
	}
	return names
}

func TestAuditLog(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	log := newAuditLog(path)
	g.Expect(log.read()).To(Succeed(), "there is no file until the API server starts")
	g.Expect(log.last()).To(BeZero())

	g.Expect(os.WriteFile(path, []byte(auditLines), 0o600)).To(Succeed())
	g.Expect(log.read()).To(Succeed())
	g.Expect(kinds(log.requests)).To(Equal([]string{
		"watch foos.example.com", "patch foos.example.com/status", "get /apis/example.com/v1alpha1",
	}), "each request must be counted once, even the watch")
	g.Expect(log.requests[0].Lists).To(BeTrue(), "the watch begins with all objects")
	g.Expect(log.requests[1].Status).To(Equal(409))
	g.Expect(log.last()).To(Equal(at(3)))
	g.Expect(kinds(log.between(at(1), at(2.5)))).To(Equal([]string{"watch foos.example.com"}), "the end of the period must be excluded")
	g.Expect(log.watches("example.com", "foos", at(0))).To(BeTrue())
	g.Expect(log.watches("example.com", "foos", at(2))).To(BeFalse(), "the watch of an earlier process must not count")
	g.Expect(log.watches("", "foos", at(0))).To(BeFalse())
}

func TestAuditLogWhileItIsWritten(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	log := newAuditLog(path)
	before, _, _ := strings.Cut(auditLines, `"auditID":"b"`)
	g.Expect(os.WriteFile(path, []byte(before), 0o600)).To(Succeed())
	g.Expect(log.read()).To(Succeed(), "an incomplete line must be left for the next call")
	g.Expect(log.requests).To(HaveLen(1))
	g.Expect(os.WriteFile(path, []byte(auditLines), 0o600)).To(Succeed())
	g.Expect(log.read()).To(Succeed())
	g.Expect(log.requests).To(HaveLen(3))
	g.Expect(log.offset).To(BeEquivalentTo(len(auditLines)), "the next call must begin where this one ended")
}

func TestAuditLogRefusesOtherLines(t *testing.T) {
	log := &auditLog{seen: sets.New[string]()}
	NewWithT(t).Expect(log.add([]byte("panic: \n"))).To(MatchError(ContainSubstring("read a line of the audit log")))
}
