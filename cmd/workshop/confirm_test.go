package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestConfirmNeedsAYes(t *testing.T) {
	cases := map[string]struct {
		input   string
		yes     bool
		refused bool
		asks    bool
	}{
		"y":                 {input: "y\n", asks: true},
		"Yes":               {input: "Yes\n", asks: true},
		"nothing but Enter": {input: "\n", asks: true, refused: true},
		"anything else":     {input: "sure\n", asks: true, refused: true},
		"no answer":         {input: "", asks: true, refused: true},
		"YES=1":             {yes: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out := &bytes.Buffer{}
			err := asker{in: strings.NewReader(c.input), out: out, yes: c.yes}.Confirm(t.Context(), "Into context prod.")
			if c.refused {
				g.Expect(err).To(MatchError(And(ContainSubstring("nothing was changed"), ContainSubstring("YES=1"))))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			if c.asks {
				g.Expect(out.String()).To(HavePrefix("Into context prod. Go on? [y/N]"))
			} else {
				g.Expect(out.String()).To(BeEmpty())
			}
		})
	}
}

func TestCtrlCEndsConfirm(t *testing.T) {
	g := NewWithT(t)
	silent, typist := io.Pipe()
	defer typist.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- asker{in: silent, out: io.Discard}.Confirm(ctx, "Into context prod.") }()
	interrupt()
	g.Eventually(result).WithTimeout(10 * time.Second).Should(Receive(MatchError("interrupted: nothing was changed")))
}
