package private_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/private"
)

func TestOnlyTheOwnerHasAccess(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "new", "below")
	g.Expect(private.MakeDir(dir)).To(Succeed())
	g.Expect(os.Chmod(dir, 0o755)).To(Succeed())
	g.Expect(private.MakeDir(dir)).To(Succeed(), "MakeDir must close an existing folder to other users")
	file := filepath.Join(dir, "file")
	g.Expect(private.WriteFile(file, []byte("old"))).To(Succeed())
	g.Expect(private.WriteFile(file, []byte("new"))).To(Succeed())
	g.Expect(os.ReadFile(file)).To(BeEquivalentTo("new"))
	for path, mode := range map[string]os.FileMode{dir: 0o700, file: 0o600} {
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(mode), path)
	}
	g.Expect(os.ReadDir(dir)).To(HaveLen(1), "no partial file may be left")
}

func TestExplain(t *testing.T) {
	other := errors.New("other")
	for cause, want := range map[error]string{
		syscall.ENOSPC: "the disk is full: free some space and run the same command again (write file: no space left on device)",
		syscall.EDQUOT: "the disk is full: free some space and run the same command again (write file: disk quota exceeded)",
		syscall.EACCES: "the folder is not writable: use one of your own (write file: permission denied)",
		syscall.EROFS:  "the folder is not writable: use one of your own (write file: read-only file system)",
		other:          "write file: other",
	} {
		err := private.Explain(fmt.Errorf("write file: %w", cause))
		NewWithT(t).Expect(err).To(And(MatchError(want), MatchError(cause)))
	}
	NewWithT(t).Expect(private.Explain(nil)).To(Succeed())
}
