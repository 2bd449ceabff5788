package behaviours

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/operatortest/internal/trial"
)

var _ = It("the final state of a new resource is determined again if another caller was cut short", func(ctx SpecContext) {
	begun := make(chan struct{}, 2)
	operator := gadgetOperator("")
	operator.Prepare = func(context.Context, client.Client, string) error {
		begun <- struct{}{}
		return nil
	}
	runner, err := trial.NewRunner(ctx, operator, cluster)
	Expect(err).NotTo(HaveOccurred())
	defer runner.Close()
	short, cutShort := context.WithCancel(ctx)
	first := make(chan error, 1)
	go func() {
		_, err := runner.Fresh(short, nil)
		first <- err
	}()
	<-begun
	second := make(chan error, 1)
	go func() {
		found, err := runner.Fresh(ctx, nil)
		if err == nil && found["ConfigMap/settings"] == nil {
			err = errors.New("there is no ConfigMap/settings")
		}
		second <- err
	}()
	cutShort()
	Expect(<-first).To(MatchError(context.Canceled))
	Expect(<-second).To(Succeed())
}, NodeTimeout(specTimeout))
