/** The flags of `skiff csi-controller` (L5): those of upstream's sidecars that are of use in one process. */
import type { CsiControllerOptions } from '#csi/controllers/context'
import { duration, flag, switches, text, UsageError, whole } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import { optional } from './leaderElection.ts'

export const csiDriverOptions = optionGroup({
  name: 'Driver',
  flags: {
    'csi-address': text("The path of the driver's socket", '/run/csi/socket'),
    timeout: optional(duration("How long a call to the driver may take; without the flag, as upstream's sidecar for the same work", 10_000)),
  },
  settings: (values) => ({ address: values['csi-address'].replace(/^unix:(\/\/)?(?=\/)/, ''), timeoutMs: values.timeout }),
})

export const csiRegistrationOptions = optionGroup({
  name: 'Registration',
  flags: {
    'kubelet-registration-path': text("The path of the driver's socket as the kubelet of this node sees it; empty: the driver is not registered"),
    'plugin-registration-path': text("The kubelet's plugins_registry, where the driver registers", '/registration'),
  },
  settings: (values) => {
    const endpoint = values['kubelet-registration-path']
    return endpoint === '' ? undefined : { endpoint, registry: values['plugin-registration-path'] }
  },
})

export const csiControllerOptions = optionGroup({
  name: 'Controllers',
  flags: {
    'capacity-for-immediate-binding': flag('Capacity is also published for classes whose volumes are created before a pod uses them'),
    'capacity-namespace': text("The namespace of the CSIStorageCapacity objects; empty: the pod's own, or default"),
    'capacity-poll-interval': duration('How often the driver is asked for its capacity', 60_000),
    'controller-publish-readonly': flag('Volumes of claims with ReadOnlyMany alone are published read-only'),
    'default-fstype': text('The file system of volumes whose class names none; empty: the driver chooses'),
    'enable-capacity': flag('The capacity of the driver is published for the scheduler'),
    'extra-create-metadata': flag('Drivers get the names of claims, volumes and snapshots as parameters'),
    'feature-gates': switches('Topology=true|false'),
    'immediate-topology': flag('Volumes that are created before a pod uses them get the topologies of all nodes', true),
    'reconcile-sync': duration('How often attachments are compared with what the driver lists', 60_000),
    'retry-interval-max': duration('The longest wait before a failed call is tried again', 300_000),
    'retry-interval-start': duration('The first wait before a failed call is tried again; it doubles with each failure', 1000),
    'strict-topology': flag('A volume for a selected node gets the topology of that node alone'),
    'worker-threads': optional(whole('How many objects of a kind are worked on at once', 10)),
  },
  settings(values): Omit<CsiControllerOptions, 'timeoutMs' | 'identity'> {
    const { Topology: hasTopology = true, ...unknown } = values['feature-gates']
    const workers = values['worker-threads']
    const faults = Object.keys(unknown).map((name) => `--feature-gates: unrecognized feature gate: ${name}`)
    if (workers !== undefined && workers < 1) faults.push('--worker-threads must be greater than zero')
    if (values['retry-interval-start'] > values['retry-interval-max']) faults.push('--retry-interval-start must not be longer than --retry-interval-max')
    if (faults.length > 0) throw new UsageError(faults)
    return {
      hasTopology,
      workers,
      compareMs: values['reconcile-sync'],
      retryStartMs: values['retry-interval-start'],
      retryMaxMs: values['retry-interval-max'],
      extraCreateMetadata: values['extra-create-metadata'],
      defaultFsType: values['default-fstype'],
      strictTopology: values['strict-topology'],
      immediateTopology: values['immediate-topology'],
      capacity: values['enable-capacity']
        ? {
            namespace: values['capacity-namespace'],
            pollMs: values['capacity-poll-interval'],
            isForImmediate: values['capacity-for-immediate-binding'],
          }
        : undefined,
      publishReadonly: values['controller-publish-readonly'],
    }
  },
})

export const csiLeaseOptions = optionGroup({
  name: 'Leader election',
  flags: {
    'leader-election': flag("Each controller acts only while it holds the Lease of upstream's sidecar for the same work", true),
    'leader-election-lease-duration': duration('How long the others wait after the last renewal before they take over', 15_000),
    'leader-election-namespace': text("The namespace of the Leases; empty: the pod's own, or default"),
    'leader-election-renew-deadline': duration('How long the leader tries to renew before it gives up', 10_000),
    'leader-election-retry-period': duration('How long to wait between attempts', 5000),
  },
  settings(values) {
    if (!values['leader-election']) return undefined
    const leaseDurationMs = values['leader-election-lease-duration']
    const renewDeadlineMs = values['leader-election-renew-deadline']
    const retryPeriodMs = values['leader-election-retry-period']
    if (leaseDurationMs <= renewDeadlineMs) throw new UsageError(['--leader-election-lease-duration must be longer than --leader-election-renew-deadline'])
    if (renewDeadlineMs <= retryPeriodMs * 1.2)
      throw new UsageError(['--leader-election-renew-deadline must be longer than 1.2 times --leader-election-retry-period'])
    return { namespace: values['leader-election-namespace'], leaseDurationMs, renewDeadlineMs, retryPeriodMs }
  },
})
