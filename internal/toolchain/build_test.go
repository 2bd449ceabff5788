package toolchain_test

import (
	"bytes"
	"context"
	"debug/macho"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"example.com/operator-workshop/internal/toolchain"
)

// course is a checkout whose tools are small commands, so that tests are fast and need no network.
type course struct {
	root, cache string
	out         *bytes.Buffer
}

func newCourse(t *testing.T, commands ...string) course {
	t.Helper()
	c := course{root: t.TempDir(), cache: t.TempDir(), out: &bytes.Buffer{}}
	module := "module example.com/tools\n\ngo 1.26.0\n\n"
	for _, command := range commands {
		module += fmt.Sprintf("tool example.com/tools/cmd/%s\n", command)
		c.write(t, "tools/cmd/"+command+"/main.go", fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", command))
	}
	c.write(t, "tools/go.mod", module)
	c.write(t, "tools/go.sum", "")
	return c
}

func (c course) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(c.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c course) ensure(ctx context.Context) (int, error) {
	return c.ensureFor(ctx, toolchain.Host())
}

func (c course) ensureFor(ctx context.Context, platform toolchain.Platform) (int, error) {
	set, err := toolchain.LoadSet(ctx, c.root, toolchain.Main)
	if err != nil {
		return 0, err
	}
	return toolchain.Builder{Root: c.root, Cache: c.cache, Platform: platform, Out: c.out}.Ensure(ctx, set)
}

func (c course) run(g Gomega, name string) string {
	out, err := exec.Command(filepath.Join(c.root, "bin", name)).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(out))
}

func TestEnsureBuildsWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	c := newCourse(t, "hammer", "saw")
	g.Expect(c.ensure(t.Context())).To(Equal(2))
	g.Expect(c.run(g, "hammer")).To(Equal("hammer"))
	g.Expect(c.run(g, "saw")).To(Equal("saw"))
	g.Expect(c.out.String()).To(MatchRegexp(`\[2/3\] hammer +done`))

	c.out.Reset()
	g.Expect(c.ensure(t.Context())).To(Equal(0))
	g.Expect(c.out.String()).To(BeEmpty(), "a builder that builds nothing must print nothing")

	t.Run("only a deleted tool is built again", func(t *testing.T) {
		g := NewWithT(t)
		built, err := filepath.EvalSymlinks(filepath.Join(c.root, "bin", "saw"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Remove(built)).To(Succeed())
		g.Expect(c.ensure(t.Context())).To(Equal(1))
		g.Expect(c.run(g, "saw")).To(Equal("saw"))
	})

	t.Run("a deleted bin/ is linked again from the cache", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(os.RemoveAll(filepath.Join(c.root, "bin"))).To(Succeed())
		g.Expect(c.ensure(t.Context())).To(Equal(0))
		g.Expect(c.run(g, "hammer")).To(Equal("hammer"))
	})

	t.Run("a second checkout with the same pins takes the tools from the cache", func(t *testing.T) {
		g := NewWithT(t)
		second := newCourse(t, "hammer", "saw")
		second.cache = c.cache
		g.Expect(second.ensure(t.Context())).To(Equal(0))
		g.Expect(second.run(g, "saw")).To(Equal("saw"))
	})

	t.Run("a changed pin builds everything again", func(t *testing.T) {
		g := NewWithT(t)
		c.write(t, "tools/go.sum", "\n")
		g.Expect(c.ensure(t.Context())).To(Equal(2))
	})

	t.Run("another platform gets a folder of its own", func(t *testing.T) {
		g := NewWithT(t)
		darwin := toolchain.Platform{OS: "darwin", Arch: "arm64"}
		g.Expect(c.ensureFor(t.Context(), darwin)).To(Equal(2))
		file, err := macho.Open(filepath.Join(c.root, "bin", "darwin_arm64", "saw"))
		g.Expect(err).NotTo(HaveOccurred())
		defer file.Close()
		g.Expect(file.Cpu).To(Equal(macho.CpuArm64))
	})
}

func TestBuildsAtTheSameTimeShareTheirTools(t *testing.T) {
	g := NewWithT(t)
	first := newCourse(t, "hammer", "saw", "plane")
	second := newCourse(t, "hammer", "saw", "plane")
	second.cache = first.cache
	var both sync.WaitGroup
	built := make([]int, 2)
	errs := make([]error, 2)
	for i, c := range []course{first, second} {
		both.Go(func() { built[i], errs[i] = c.ensure(t.Context()) })
	}
	both.Wait()
	g.Expect(errs).To(HaveEach(BeNil()))
	g.Expect(built[0]+built[1]).To(Equal(3), "each tool must be built once")
	g.Expect(first.run(g, "plane")).To(Equal("plane"))
	g.Expect(second.run(g, "plane")).To(Equal("plane"))
}

func TestInterruptedBuildResumes(t *testing.T) {
	g := NewWithT(t)
	c := newCourse(t, "hammer", "saw")
	cut, cancel := context.WithCancel(t.Context())
	set, err := toolchain.LoadSet(cut, c.root, toolchain.Main)
	g.Expect(err).NotTo(HaveOccurred())
	builder := toolchain.Builder{Root: c.root, Cache: c.cache, Platform: toolchain.Host(), Out: cutAfter{c.out, "hammer", cancel}}
	_, err = builder.Ensure(cut, set)
	g.Expect(err).To(MatchError(ContainSubstring("interrupted")))
	g.Expect(filepath.Join(c.root, "bin", "saw")).NotTo(BeAnExistingFile())
	partial, err := filepath.Glob(filepath.Join(c.cache, "tools", "*", "*.partial"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial).To(BeEmpty())
	g.Expect(c.ensure(t.Context())).To(Equal(1), "the finished hammer must be kept")
	g.Expect(c.run(g, "saw")).To(Equal("saw"))
}

// cutAfter cancels the context as soon as a line about the named component is written.
type cutAfter struct {
	*bytes.Buffer
	name   string
	cancel context.CancelFunc
}

func (c cutAfter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.name)) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}

func TestBuildFailures(t *testing.T) {
	cases := map[string]struct {
		arrange func(t *testing.T, c *course)
		want    string
	}{
		"a compile error names the tool and the compiler's first message": {
			func(t *testing.T, c *course) {
				c.write(t, "tools/cmd/hammer/main.go", "package main\n\nfunc main() { nail() }\n")
			},
			`build hammer: cmd/hammer/main.go:3:15: undefined: nail`,
		},
		"no network": {
			func(t *testing.T, c *course) {
				t.Setenv("GOPROXY", "off")
				t.Setenv("GOMODCACHE", t.TempDir())
				c.write(t, "tools/go.mod", "module example.com/tools\n\ngo 1.26.0\n\ntool example.com/other/cmd/x\n\nrequire example.com/other v1.0.0\n")
				c.write(t, "tools/go.sum", "example.com/other v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nexample.com/other v1.0.0/go.mod h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
			},
			"connect to the internet",
		},
		"a cache that can't be written to": {
			func(_ *testing.T, c *course) {
				c.cache = filepath.Join(c.root, "tools", "go.mod")
			},
			"set WORKSHOP_CACHE to a directory that you can write to",
		},
		"a Go that is too old": {
			func(t *testing.T, c *course) {
				t.Setenv("GOTOOLCHAIN", "local")
				c.write(t, "tools/go.mod", "module example.com/tools\n\ngo 1.99.0\n\ntool example.com/tools/cmd/hammer\n")
			},
			"this Go is too old",
		},
		"a checkout that can't be written to": {
			func(t *testing.T, c *course) { c.write(t, "bin", "no folder") },
			"clone the workshop into a directory of your own",
		},
		"no go command": {
			func(t *testing.T, _ *course) { t.Setenv("PATH", t.TempDir()) },
			"the go command is not on your PATH",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCourse(t, "hammer")
			test.arrange(t, &c)
			_, err := c.ensure(t.Context())
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "an error must be one line")
		})
	}
}

func TestAnUnknownSetIsRefused(t *testing.T) {
	g := NewWithT(t)
	c := newCourse(t, "hammer")
	c.write(t, "tools/linter/go.mod", "module example.com/linter\n")
	_, err := toolchain.LoadSet(t.Context(), c.root, "lint")
	g.Expect(err).To(MatchError(`there is no tool set "lint": choose one of tools, linter`))
}

func TestTerminalShowsABarAndTheTime(t *testing.T) {
	g := NewWithT(t)
	c := newCourse(t, "hammer")
	set, err := toolchain.LoadSet(t.Context(), c.root, toolchain.Main)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = toolchain.Builder{Root: c.root, Cache: c.cache, Platform: toolchain.Host(), Out: c.out, Terminal: true}.Ensure(ctx, set)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.out.String()).To(ContainSubstring("building"))
	g.Expect(c.out.String()).To(MatchRegexp(`█{20} \[2/2\] hammer +done +0:0\d   total 0:0\d\n$`))
}

func TestPrefetch(t *testing.T) {
	g := NewWithT(t)
	c := newCourse(t, "hammer")
	c.write(t, "go.mod", "module example.com/course\n\ngo 1.26.0\n")
	c.write(t, "go.sum", "")
	c.write(t, "course.go", "package course\n")
	c.write(t, "01-stage/go.mod", "module example.com/course/01-stage\n\ngo 1.26.0\n")
	c.write(t, "01-stage/go.sum", "")
	c.write(t, "01-stage/stage.go", "package stage\n")
	builder := toolchain.Builder{Root: c.root, Cache: c.cache, Platform: toolchain.Host(), Out: c.out}
	g.Expect(os.Mkdir(filepath.Join(c.root, "bin"), 0o755)).To(Succeed())
	g.Expect(builder.Prefetch(t.Context())).To(Succeed())
	g.Expect(c.out.String()).To(ContainSubstring("Downloading"))

	c.out.Reset()
	g.Expect(builder.Prefetch(t.Context())).To(Succeed())
	g.Expect(c.out.String()).To(BeEmpty(), "Prefetch must download nothing if nothing has changed")

	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	c.write(t, "01-stage/go.mod", "module example.com/course/01-stage\n\ngo 1.26.0\n\nrequire example.com/other v1.0.0\n")
	c.write(t, "01-stage/go.sum", "example.com/other v1.0.0 h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nexample.com/other v1.0.0/go.mod h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
	c.write(t, "01-stage/stage.go", "package stage\n\nimport _ \"example.com/other\"\n")
	g.Expect(builder.Prefetch(t.Context())).To(MatchError(SatisfyAll(ContainSubstring("01-stage"), ContainSubstring("connect to the internet"))))
}
