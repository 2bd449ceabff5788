package trial

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
)

func TestOperatorLog(t *testing.T) {
	g := NewWithT(t)
	global := &strings.Builder{}
	klog.SetLogger(funcr.New(func(_, line string) { global.WriteString(line + "\n") }, funcr.Options{}))
	t.Cleanup(klog.ClearLogger)
	dead := false
	log := &operatorLog{dead: func() bool { return dead }}
	g.Expect(log.exists()).To(BeFalse())
	file := filepath.Join(t.TempDir(), "log")
	g.Expect(os.WriteFile(file, []byte("printed early\n"), 0o600)).To(Succeed())
	g.Expect(log.follow(file)).To(Succeed())
	g.Expect(log.exists()).To(BeTrue(), "a file is a log even before it has lines")

	logger := log.logger().WithName("widgets").WithValues("widget", "a")
	logger.Info("made")
	logger.V(logLevel).Info("details")
	logger.V(8).Info("the body of a request")
	logger.Error(errors.New("refused"), "not made")
	g.Expect(os.Remove(file)).To(Succeed())

	g.Expect(log.String()).To(And(ContainSubstring(`widgets "level"=0 "msg"="made" "widget"="a"`), ContainSubstring("details"),
		ContainSubstring(`"error"="refused"`), ContainSubstring("printed early"), Not(ContainSubstring("body"))))
	g.Expect(global.String()).To(And(ContainSubstring(`"msg"="made" "logger"="widgets" "widget"="a"`), ContainSubstring("refused"), Not(ContainSubstring("details"))),
		"klog's logger must also get the operator's messages, up to its own verbosity")
	g.Expect(log.lastLines()).To(And(ContainSubstring("made"), Not(ContainSubstring("details")), HaveSuffix("printed early")))

	klog.SetLogger(logr.Discard())
	log.logger().Info("no one else listens")
	g.Expect(log.String()).To(ContainSubstring("no one else listens"))

	dead = true
	logger.Info("logged by a dead operator")
	g.Expect(log.String()).NotTo(ContainSubstring("dead"))
	log.close()
	g.Expect(log.files).To(BeEmpty())
}
