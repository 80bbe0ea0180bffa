/** The flags of leader election (L5). Upstream: component-base/config/options/leaderelectionconfig.go (v1.36). */
import { duration, type Flag, flag, text, UsageError } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import type { LeaseSettings } from '../leading.ts'

/** A flag that is undefined unless it is given, and shown with the value that then holds. */
export function optional<T>(one: Flag<T>): Flag<T | undefined> {
  return { ...one, default: undefined, format: (value) => one.format(value ?? one.default) }
}

export function leaderElectionFlags(component: string) {
  return {
    'leader-elect': optional(flag('Work only while holding the lease, so that one of several processes acts', true)),
    'leader-elect-lease-duration': optional(duration('How long the others wait after the last renewal before they take over', 15_000)),
    'leader-elect-renew-deadline': optional(duration('How long the leader tries to renew before it gives up', 10_000)),
    'leader-elect-resource-lock': optional(text('The kind of object that is the lock: leases', 'leases')),
    'leader-elect-resource-name': optional(text('The name of the lease', component)),
    'leader-elect-resource-namespace': optional(text('Its namespace', 'kube-system')),
    'leader-elect-retry-period': optional(duration('How long to wait between attempts', 2000)),
  }
}

/** Undefined: the flag is not given. */
export type GivenLease = { readonly [name in keyof LeaseSettings]: LeaseSettings[name] | undefined } & { readonly resourceLock: string | undefined }

export function leaderElection(component: string) {
  return optionGroup({
    name: 'Leader election',
    flags: leaderElectionFlags(component),
    settings: (values): GivenLease => ({
      leaderElect: values['leader-elect'],
      leaseDurationMs: values['leader-elect-lease-duration'],
      renewDeadlineMs: values['leader-elect-renew-deadline'],
      retryPeriodMs: values['leader-elect-retry-period'],
      resourceLock: values['leader-elect-resource-lock'],
      resourceName: values['leader-elect-resource-name'],
      resourceNamespace: values['leader-elect-resource-namespace'],
    }),
  })
}

type Lease = LeaseSettings & { readonly resourceLock: string }

/** What flags say holds over `otherwise`. @throws UsageError for times that make no sense together, in upstream's words */
export function leaseOf(given: GivenLease, otherwise: Lease): Lease {
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const lease: Lease = { ...otherwise, ...set }
  const faults = lease.leaderElect ? checks.filter(({ wrong }) => wrong(lease)).map(({ message }) => message) : []
  if (faults.length > 0) throw new UsageError(faults)
  return lease
}

/** The defaults of all components. */
export function defaultLease(component: string): Lease {
  return {
    leaderElect: true,
    leaseDurationMs: 15_000,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    resourceLock: 'leases',
    resourceName: component,
    resourceNamespace: 'kube-system',
  }
}

/** Of client-go's election. */
const jitterFactor = 1.2

const checks: readonly { wrong(lease: Lease): boolean; message: string }[] = [
  { wrong: (lease) => lease.resourceLock !== 'leases', message: 'resourceLock value must be "leases"' },
  { wrong: (lease) => lease.leaseDurationMs < 1, message: 'leaseDuration must be greater than zero' },
  { wrong: (lease) => lease.renewDeadlineMs < 1, message: 'renewDeadline must be greater than zero' },
  { wrong: (lease) => lease.retryPeriodMs < 1, message: 'retryPeriod must be greater than zero' },
  { wrong: (lease) => lease.leaseDurationMs <= lease.renewDeadlineMs, message: 'leaseDuration must be greater than renewDeadline' },
  {
    wrong: (lease) => lease.renewDeadlineMs <= lease.retryPeriodMs * jitterFactor,
    message: 'renewDeadline must be greater than retryPeriod*JitterFactor',
  },
]
