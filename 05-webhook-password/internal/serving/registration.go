package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// ServedAtAnnotation is on every object that tells the API server of a local
	// webhook server. Its value is the address of the process that looks after the object.
	ServedAtAnnotation = "secret.example.com/webhooks-served-at"

	// retryInterval is how long a beginning or an end waits before another attempt.
	retryInterval = 200 * time.Millisecond
	beginTimeout  = 15 * time.Second
	// endTimeout is shorter than the time that a manager gives its parts to end.
	endTimeout = 5 * time.Second
)

// errTakenOver ends a process whose webhooks another one has taken over.
var errTakenOver = errors.New("the webhooks have been taken over")

// Start implements manager.Runnable. It registers the webhooks, keeps them
// registered until the context ends, and takes the registration back. The manager
// ends its webhook server after that, so somebody answers as long as requests come.
func (l *Local) Start(ctx context.Context) error {
	err := l.keepRegistered(ctx)
	if !l.listened {
		return err
	}
	if endErr := l.end(context.WithoutCancel(ctx)); endErr != nil && err != nil {
		return fmt.Errorf("%w; %w", err, endErr)
	} else if endErr != nil {
		return endErr
	}
	return err
}

func (l *Local) keepRegistered(ctx context.Context) error {
	if err := l.begin(ctx); err != nil {
		return ignoreEnd(ctx, fmt.Errorf("register the webhooks: %w", err))
	}
	l.registered.Store(true)
	log := logf.FromContext(ctx)
	log.Info("Registered the webhooks", "address", l.address)

	var problem string
	err := wait.PollUntilContextCancel(ctx, l.interval, false, func(ctx context.Context) (bool, error) {
		err := l.check(ctx)
		if errors.Is(err, errTakenOver) {
			return false, err
		}
		if err != nil && ctx.Err() == nil && err.Error() != problem {
			log.Error(err, "Can't check the registration of the webhooks, trying again", "every", l.interval)
		}
		problem = fmt.Sprint(err)
		return false, nil
	})
	return ignoreEnd(ctx, err)
}

// ignoreEnd drops the errors that come of the end of the context.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin waits for the webhook server, and registers it in place of whatever was
// registered before: a process that was killed took nothing back.
func (l *Local) begin(ctx context.Context) error {
	return persist(ctx, beginTimeout, func(ctx context.Context) error {
		if err := l.listening((&http.Request{}).WithContext(ctx)); err != nil {
			return err
		}
		l.listened = true
		_, err := l.putAll(ctx, l.takeOver)
		return err
	})
}

// check puts right what others have changed, and takes the next step of a rotation.
func (l *Local) check(ctx context.Context) error {
	changed, err := l.putAll(ctx, l.respect)
	if err != nil {
		return err
	}
	before := l.authority.Bundle()
	if err := l.authority.Advance(!changed); err != nil {
		return err
	}
	if bytes.Equal(before, l.authority.Bundle()) {
		return nil
	}
	logf.FromContext(ctx).Info("Rotating the certificates of the webhooks")
	_, err = l.putAll(ctx, l.respect)
	return err
}

// putAll makes the API server call this process. It reports whether anything had to be changed.
func (l *Local) putAll(ctx context.Context, mayPut func(metav1.Object) error) (changed bool, err error) {
	bundle := l.authority.Bundle()
	configurations, err := l.configurations(bundle)
	if err != nil {
		return false, err
	}
	for _, configuration := range configurations {
		changedOne, err := l.putConfiguration(ctx, configuration, mayPut)
		if err != nil {
			return changed, err
		}
		changed = changed || changedOne
	}
	changedOne, err := l.putConversion(ctx, bundle, mayPut)
	return changed || changedOne, err
}

// takeOver allows to change an object whoever looks after it.
func (*Local) takeOver(metav1.Object) error { return nil }

// respect refuses to change an object that another process looks after by now.
// Two that put each other's changes right would never end.
func (l *Local) respect(object metav1.Object) error {
	if holder := object.GetAnnotations()[ServedAtAnnotation]; holder != "" && holder != l.address {
		return fmt.Errorf("%w by another process, at %s", errTakenOver, holder)
	}
	return nil
}

// end takes back what this process has registered, but nothing that another one has taken over.
func (l *Local) end(ctx context.Context) error {
	l.registered.Store(false)
	err := persist(ctx, endTimeout, func(ctx context.Context) error {
		configurations, err := l.configurations(nil)
		if err != nil {
			return err
		}
		for _, configuration := range configurations {
			if err := l.removeConfiguration(ctx, configuration); err != nil {
				return err
			}
		}
		return l.restoreConversion(ctx)
	})
	if err != nil {
		return fmt.Errorf("take the registration of the webhooks back: %w", err)
	}
	return nil
}

// persist tries until it succeeds, the time is over, or trying again is of no use. The error is the last attempt's.
func persist(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, retryInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := attempt(ctx)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if apierrors.IsForbidden(err) || errors.Is(err, errNoDefinition) {
			return false, err
		}
		return err == nil, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
