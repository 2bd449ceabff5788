package classroom_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/classroom"
	"example.com/operator-workshop/internal/repo"
)

// The stand-ins for kwokctl fail as it does: by itself, or because a component has ended. No process has that number.
const (
	failedKwokctl = "#!/bin/sh\necho 'ERR: write kwok.yaml: no space left on device' >&2\nexit 1\n"
	failedEtcd    = `#!/bin/sh
cluster="$HOME/.kwok/clusters/$4"
mkdir -p "$cluster/pids" "$cluster/logs"
echo "$MESSAGE" > "$cluster/logs/etcd.log"
echo 99999999 > "$cluster/pids/etcd.pid"
exec sleep 600
`
)

func TestFailedCreation(t *testing.T) {
	cases := map[string]struct{ kwokctl, message, want string }{
		"the disk is full":          {failedKwokctl, "", "the disk is full"},
		"the disk is full for etcd": {failedEtcd, "panic: write wal: no space left on device", "the disk is full"},
		"etcd ends":                 {failedEtcd, "some panic", "some panic"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := repo.Repo{Root: t.TempDir()}
			g.Expect(os.MkdirAll(r.Bin(), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(r.Bin(), "kwokctl"), []byte(c.kwokctl), 0o755)).To(Succeed())
			t.Setenv("MESSAGE", c.message)
			out := &bytes.Buffer{}
			cluster, err := classroom.New(classroom.Options{Repo: r, Provider: classroom.Embedded, Name: "demo", Nodes: 1, Out: out})
			g.Expect(err).NotTo(HaveOccurred())
			failed := cluster.Up(testContext(t))
			g.Expect(failed).To(MatchError(ContainSubstring(c.want)))
			g.Expect(failed.Error()).NotTo(ContainSubstring("\n"), "an error is one line")
			if log := regexp.MustCompile(`all its messages: (.*)\)`).FindStringSubmatch(failed.Error()); log != nil {
				g.Expect(filepath.Join(r.Root, log[1])).To(BeAnExistingFile(), "what the error names is there")
				return
			}
			g.Expect(out.String()).NotTo(ContainSubstring("trying again"), "it would not help")
			g.Expect(filepath.Join(r.State(), "embedded", ".kwok", "clusters", "demo")).NotTo(BeADirectory(), "it gives back what it took")
		})
	}
}
