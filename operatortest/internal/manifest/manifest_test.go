package manifest

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRefusal(t *testing.T) {
	cases := map[string]struct{ content, want, err string }{
		"the first line quotes the message":    {"# refused: size must be odd\nkind: Widget\n", "size must be odd", ""},
		"a file without the line is an error":  {"kind: Widget\n", "", "does not say why it is refused"},
		"a line without a message is an error": {"# refused:  \nkind: Widget\n", "", "does not say why it is refused"},
		"only the first line counts":           {"kind: Widget\n# refused: size\n", "", "does not say why it is refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "sample.yaml")
			g.Expect(os.WriteFile(file, []byte(c.content), 0o600)).To(Succeed())
			message, err := Refusal(file)
			g.Expect(message).To(Equal(c.want))
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestReadObjects(t *testing.T) {
	cases := map[string]struct {
		content string
		objects int
		err     string
	}{
		"several documents with comments": {"# first\n---\nkind: A\n---\n# nothing\n---\nkind: B\n", 2, ""},
		"a field written twice":           {"kind: A\nkind: B\n", 0, `key "kind" already set`},
		"a file that has no object":       {"# nothing\n", 0, "contains no object"},
		"invalid YAML":                    {"kind: [A\n", 0, "read "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "sample.yaml")
			g.Expect(os.WriteFile(file, []byte(c.content), 0o600)).To(Succeed())
			objects, err := Read(file)
			g.Expect(objects).To(HaveLen(c.objects))
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestSampleFiles(t *testing.T) {
	g := NewWithT(t)
	samples, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"widgets.yaml", "kustomization.yaml", "notes.md"} {
		g.Expect(os.WriteFile(filepath.Join(samples, name), []byte("kind: Widget\n"), 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile(filepath.Join(empty, "README.md"), nil, 0o600)).To(Succeed())
	g.Expect(Files(samples)).To(Equal([]string{filepath.Join(samples, "widgets.yaml")}))
	_, err := Files(empty)
	g.Expect(err).To(MatchError(ContainSubstring("contains no YAML file")))
	_, err = Files("testdata/absent")
	g.Expect(err).To(MatchError(os.ErrNotExist))
}
