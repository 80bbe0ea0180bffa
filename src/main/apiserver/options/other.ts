/**
 * Flags of kube-apiserver's whose choice this server has made already (L5): taken where they ask for that, refused where they ask for something
 * else.
 */
import { kubernetesVersion } from '#base/version'
import { duration, flag, text, UsageError, whole } from './flags.ts'
import { optionGroup } from './optionGroup.ts'

const absent = 'Only empty: there is no such thing here'
const absentFlags = ['debug-socket-path', 'peer-advertise-ip', 'peer-advertise-port', 'peer-ca-file'] as const

export const other = optionGroup({
  name: 'Other',
  flags: {
    'contention-profiling': flag('Accepted, without effect: there are no locks to wait for'),
    'coordinated-leadership-lease-duration': duration('Accepted, without effect: leaders are elected by those who want to lead', 15_000),
    'coordinated-leadership-renew-deadline': duration('Accepted, without effect, as --coordinated-leadership-lease-duration', 10_000),
    'coordinated-leadership-retry-period': duration('Accepted, without effect, as --coordinated-leadership-lease-duration', 2000),
    'debug-socket-path': text(absent),
    'emulated-version': text(`Only empty or ${kubernetesVersion}, the version that this is`),
    'enable-logs-handler': flag('Accepted, without effect: the log goes to the standard error, and no path shows it'),
    'livez-grace-period': duration('Accepted, without effect: /livez is well as soon as the process answers', 0),
    'max-connection-bytes-per-sec': whole('Accepted, without effect: streams are as fast as both ends take them', 0),
    'peer-advertise-ip': text(absent),
    'peer-advertise-port': text(absent),
    'peer-ca-file': text(absent),
  },
  settings(values) {
    const emulated = values['emulated-version'].replace(/^kube=/, '')
    const faults = [
      ...absentFlags.filter((name) => values[name] !== '').map((name) => `--${name} is not there: leave it out`),
      ...(['', kubernetesVersion].includes(emulated) ? [] : [`--emulated-version ${emulated} is not there: only ${kubernetesVersion}`]),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {}
  },
})
