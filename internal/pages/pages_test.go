package pages

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheck(t *testing.T) {
	const other = "# 1.1 `Get` it, in Go\n\n## Same\n\n## Same\n"
	const wrong = "rec" + "ieve"
	tests := map[string]struct{ page, want string }{
		"links that lead somewhere":         {"# A B\n\n[a](other.md) [b](other.md#11-get-it-in-go) [c](#a-b) [d](other.md#same-1) [e](..) [f](https://example.com/x) <https://example.com>\n", ""},
		"a link in a table":                 {"| a |\n|---|\n| [b](none.md) |\n", "3: the link none.md: there is no such file"},
		"a link to a missing file":          {"text\n[a](none.md#x)\n", "2: the link none.md#x: there is no such file"},
		"a link to a missing heading":       {"[a](other.md#none)\n", "1: the link other.md#none: docs/other.md has no such heading"},
		"a link to a missing third heading": {"[a](other.md#same-2)\n", "1: the link other.md#same-2: docs/other.md has no such heading"},
		"a link to a missing heading here":  {"# A\n\n[a](#b)\n", "3: the link #b: docs/page.md has no such heading"},
		"a link by reference":               {"[a]\n\n[a]: none.md\n", "1: the link none.md: there is no such file"},
		"an image that is missing":          {"![a](a.png)\n", "1: the link a.png: there is no such file"},
		"a link out of the repository":      {"[a](../../x)\n", "1: the link ../../x leads out of the repository"},
		"an absolute path":                  {"[a](/etc/passwd)\n", "1: the link /etc/passwd leads out of the repository"},
		"a link without encryption":         {"[a](http://example.com)\n", "1: the link http://example.com: use https, or a path within the repository"},
		"a word that is spelt wrong":        {"# A\n\nOne line.\nThey " + wrong + " it.\n", `4: "` + wrong + `": should it be "receive"?`},
		"a phrase that belittles":           {"- You Simply do it.\n", `1: "Simply": leave it out: it isn't simple to someone who is learning it`},
		"a phrase over two lines":           {"One\n*two* in\norder to go\n", `2: "in order to": write: to`},
		"a phrase in a heading":             {"# Obviously\n", `1: "Obviously": leave it out: what is obvious to you may not be to a reader`},
		"code, comments and other words":    {"`simply " + wrong + "`\n\n```text\nsimply " + wrong + "\n```\n\n<!-- simply " + wrong + " -->\n\nuncomes upon, simplyX\n", ""},
		"a fold's content":                  {"<details>\n<summary>a</summary>\n\nSimply.\n\n</details>\n", `4: "Simply": leave it out: it isn't simple to someone who is learning it`},
		"words with code between them":      {"in `x` order to\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			path := filepath.Join(root, "docs", "page.md")
			g.Expect(os.Mkdir(filepath.Dir(path), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(path, []byte(test.page), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(root, "docs", "other.md"), []byte(other), 0o600)).To(Succeed())
			err := NewChecker(root).Check(path)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(path + ":" + test.want))
		})
	}
}

func TestCheckNamesAMissingPage(t *testing.T) {
	err := NewChecker(t.TempDir()).Check("none.md")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("read page: open none.md")))
}
