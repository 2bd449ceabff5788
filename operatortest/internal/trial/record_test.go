package trial

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"example.com/operator-workshop/operatortest/report"
	"example.com/operator-workshop/operatortest/traffic"
)

func TestTimelineIsInTheOrderOfTime(t *testing.T) {
	g := NewWithT(t)
	requests := []traffic.Request{
		{Verb: "watch", Resource: "foos", Group: "example.com", Namespace: "a", At: time.Second, Status: 200, Done: true},
		{Verb: "create", Resource: "secrets", Namespace: "a", Name: "b", At: 3 * time.Second, Status: 409, Done: true},
	}
	events := []traffic.Event{
		{Type: apiwatch.Added, Group: "example.com", Resource: "foos", Namespace: "a", Name: "b", Version: "7", At: 2 * time.Second},
		{Type: apiwatch.Deleted, Resource: "nodes", Name: "n", Version: "9", At: 4 * time.Second},
	}
	g.Expect(timeline(2, requests, events)).To(Equal([]report.Entry{
		{Operator: 2, Seconds: 1, What: "watch foos.example.com", Object: requests[0].Target(), Reply: requests[0].Result()},
		{Operator: 2, Seconds: 2, What: "ADDED foos.example.com", Object: "a/b", Reply: "resource version 7"},
		{Operator: 2, Seconds: 3, What: "create secrets", Object: "a/b", Reply: requests[1].Result(), Injected: true},
		{Operator: 2, Seconds: 4, What: "DELETED nodes", Object: "n", Reply: "resource version 9"},
	}))
}
