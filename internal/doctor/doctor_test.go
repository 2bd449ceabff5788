package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/repo"
)

// program sets PATH to a folder with a single command, which prints the text.
func program(t *testing.T, name, prints string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho '" + prints + "'\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestCheckGo(t *testing.T) {
	r := repo.Repo{Root: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.Root, "go.mod"), []byte("module x\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		prints string
		ok     bool
	}{
		"the version that go.mod names": {"go1.26.0", true},
		"a newer patch":                 {"go1.26.8", true},
		"a newer minor":                 {"go1.30", true},
		"an older one":                  {"go1.25.9", false},
		"a much older one":              {"go1.9", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			program(t, "go", c.prints)
			check := checkGo(t.Context(), r)
			g.Expect(check.OK()).To(Equal(c.ok), "%+v", check)
			g.Expect(check.Found).To(Equal(c.prints))
		})
	}
	t.Run("no go command", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("PATH", t.TempDir())
		g.Expect(checkGo(t.Context(), r).Remedy).To(ContainSubstring("install Go 1.26.0"))
	})
}

func TestCheckTool(t *testing.T) {
	pattern := regexp.MustCompile(`GNU Make ([0-9.]+)`)
	cases := map[string]struct {
		prints string
		ok     bool
	}{
		"the oldest that works":    {"GNU Make 3.81", true},
		"a newer one":              {"GNU Make 4.4.1", true},
		"too old":                  {"GNU Make 3.80", false},
		"another program's output": {"bmake", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			program(t, "make", c.prints)
			g.Expect(checkTool(t.Context(), "make", "GNU make 3.81", "3.81", pattern).OK()).To(Equal(c.ok))
		})
	}
	t.Run("missing", func(t *testing.T) {
		g := NewWithT(t)
		t.Setenv("PATH", t.TempDir())
		check := checkTool(t.Context(), "git", "git 2.20", "2.20", pattern)
		g.Expect(check.OK()).To(BeFalse())
		g.Expect(check.Remedy).To(ContainSubstring("git"))
	})
}

func TestAnUnwritableCacheIsReported(t *testing.T) {
	g := NewWithT(t)
	r := repo.Repo{Root: t.TempDir()}
	file := filepath.Join(r.Root, "file")
	g.Expect(os.WriteFile(file, nil, 0o644)).To(Succeed())
	t.Setenv(repo.CacheVariable, filepath.Join(file, "cache"))
	check := checkWritable(r)
	g.Expect(check.Found).To(Equal("cache not writable"))
	g.Expect(check.Remedy).To(ContainSubstring("export " + repo.CacheVariable))
	t.Setenv(repo.CacheVariable, t.TempDir())
	g.Expect(checkWritable(r).OK()).To(BeTrue())
}

func TestReadyAndPrint(t *testing.T) {
	met, missing := Check{Name: "a"}, Check{Name: "b", Remedy: "install b"}
	optional := Check{Name: "c", Remedy: "install c", Optional: true}
	g := NewWithT(t)
	g.Expect(Ready([]Check{met})).To(BeTrue())
	g.Expect(Ready([]Check{met, optional})).To(BeTrue())
	g.Expect(Ready([]Check{met, missing})).To(BeFalse())
	out := &bytes.Buffer{}
	Print(out, []Check{met, missing, optional})
	g.Expect(out.String()).To(MatchRegexp(`(?m)^ok +a`))
	g.Expect(out.String()).To(MatchRegexp(`(?m)^MISSING +b`))
	g.Expect(out.String()).To(MatchRegexp(`(?m)^optional +c`))
	g.Expect(out.String()).To(ContainSubstring("b: install b"))
}

func TestDockerIsOptionalWithoutKind(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("PATH", t.TempDir())
	g.Expect(checkDocker(t.Context(), false).Optional).To(BeTrue())
	g.Expect(checkDocker(t.Context(), true).Optional).To(BeFalse())
}

func TestAtLeast(t *testing.T) {
	cases := map[string]struct {
		found, needed string
		want          bool
	}{
		"equal":                         {"1.26.0", "1.26.0", true},
		"shorter, but equal":            {"1.26", "1.26.0", true},
		"shorter and older":             {"1.26", "1.26.1", false},
		"compared as numbers, not text": {"1.9.0", "1.26.0", false},
		"a release candidate's number":  {"1.27rc1", "1.26.0", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(atLeast(c.found, c.needed)).To(Equal(c.want)) })
	}
}
