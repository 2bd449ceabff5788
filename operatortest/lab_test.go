package operatortest

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("trials side by side", func() {
	It("report the lowest one that fails, though a higher one fails sooner", func(ctx SpecContext) {
		higher := make(chan struct{})
		err := each(ctx, 3, func(ctx context.Context, i int) error {
			if i == 2 {
				defer close(higher)
				return errors.New("the higher one")
			}
			<-higher
			if i == 0 {
				return nil
			}
			return errors.Join(ctx.Err(), errors.New("the lower one"))
		})
		Expect(err).To(MatchError("the lower one"))
	})

	It("end those above the one that fails", func(ctx SpecContext) {
		err := each(ctx, 3*parallelTrials, func(ctx context.Context, i int) error {
			if i == 0 {
				return errors.New("the lowest one")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		Expect(err).To(MatchError("the lowest one"))
	})

	It("say when the time was up before all were tried", func(ctx SpecContext) {
		bounded, cancel := context.WithCancel(ctx)
		err := each(bounded, 2*parallelTrials, func(context.Context, int) error {
			cancel()
			return nil
		})
		Expect(err).To(MatchError(context.Canceled))
	})
})

var _ = It("what a new resource ends like is found out again if another caller was cut short", func(ctx SpecContext) {
	lab, err := newLab(ctx, gadgetOperator(""), cluster)
	Expect(err).NotTo(HaveOccurred())
	key := oneLine(lab.sampleSpec())
	others := &end{cutShort: true, err: context.Canceled}
	others.once.Do(func() {})
	lab.ends[key] = others
	Expect(lab.fresh(ctx, nil)).To(HaveKey("ConfigMap/settings"))
})
