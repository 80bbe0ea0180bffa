/** How a component reaches the API server, and how much it says (L5). Upstream: component-base/config ClientConnectionConfiguration (v1.36). */
import { decimal, flag, text, whole } from '../../apiserver/options/flags.ts'
import { optionGroup } from '../../apiserver/options/optionGroup.ts'
import { optional } from './leaderElection.ts'

export interface ConnectionSettings {
  /** Empty: the pod's own service account. */
  readonly kubeconfig: string
  /** Empty: the kubeconfig's server. */
  readonly master: string
  /** Undefined: not given. */
  readonly qps: number | undefined
  readonly burst: number | undefined
}

/** @param rate upstream's defaults, which differ by component */
export function connection(rate: { readonly qps: number; readonly burst: number }) {
  return optionGroup({
    name: 'Connection',
    flags: {
      'kube-api-burst': optional(whole('How many calls may go at once beyond that', rate.burst)),
      'kube-api-content-type': text('Accepted, without effect: calls are made in JSON', 'application/json'),
      'kube-api-qps': optional(decimal('How many calls a second each client makes; negative: as many as it likes', rate.qps)),
      kubeconfig: text("Where the API server is and how to log in; empty: in a pod, its service account's"),
      master: text("The API server's address, whatever the kubeconfig says"),
    },
    settings: (values): ConnectionSettings => ({
      kubeconfig: values.kubeconfig,
      master: values.master,
      qps: values['kube-api-qps'],
      burst: values['kube-api-burst'],
    }),
  })
}

export const debugging = optionGroup({
  name: 'Debugging',
  flags: {
    'contention-profiling': flag('Accepted, without effect: there are no locks to wait for'),
    profiling: flag('Serve profiles of this process below /debug/pprof', true),
  },
  settings: (values) => ({ profiling: values.profiling }),
})
