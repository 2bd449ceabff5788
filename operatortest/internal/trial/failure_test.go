package trial

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/traffic"
)

func TestFailureShowsWhatTheOperatorsLogged(t *testing.T) {
	failed := &failure{cause: errors.New("operator 2 exited: it said\nfarewell"), logs: make([][]traffic.Request, 3), said: []string{"busy\nretrying", "farewell", ""}}
	NewWithT(t).Expect(failed.Error()).To(Equal("operator 2 exited: it said\nfarewell\n" +
		"requests of operator 1 (0 earlier ones left out):\nthe last lines of its log:\nbusy\nretrying\n" +
		"requests of operator 2 (0 earlier ones left out):\nrequests of operator 3 (0 earlier ones left out):"))
}
