/** The lab on the kubelet (L4). */
import { deployments, pods } from '#client/builtIn'
import type { Lab } from './lab.ts'
import { passes } from './outcome.ts'
import { create } from './workloads.ts'

export const kubelet: Lab = {
  number: 10,
  title: 'Inside the kubelet',
  about: 'The kubelet starts containers, probes them, restarts them with a growing delay, and reports all of it in the status of the pod.',
  start: async (look) => {
    await create.pod(look, 'flaky', {
      annotations: { 'skiff.dev/simulated-exit-after-seconds': '1', 'skiff.dev/simulated-exit-code': '137', 'skiff.dev/simulated-exit-reason': 'OOMKilled' },
    })
    const probed = { name: 'app', image: 'lab.skiff.dev/app:1', readinessProbe: { httpGet: { port: 8080 }, periodSeconds: 1 } }
    await create.deployment(look, 'slow', 1, { annotations: { 'skiff.dev/simulated-readiness': 'fail' }, spec: { containers: [probed] as never } })
  },
  tasks: [
    {
      text: 'The pod "flaky" restarts again and again. For which reason did its container end last time? Answer with the annotation "reason" of the namespace lab-10.',
      hint: `for try in $(seq 30); do reason=$(kubectl get pod flaky -n lab-10 -o jsonpath='{.status.containerStatuses[0].lastState.terminated.reason}'); [ -n "$reason" ] && break; sleep 1; done
kubectl annotate namespace lab-10 --overwrite reason=$reason`,
      check: async (look) => look.answers('reason', (await look.get(pods, 'flaky'))?.status?.containerStatuses?.[0]?.lastState?.terminated?.reason),
    },
    {
      text: 'The pod of the Deployment "slow" runs and is not ready: its readiness probe fails, since the annotation skiff.dev/simulated-readiness of its template says so. Change the template so that the probe passes.',
      hint: `kubectl patch deployment slow -n lab-10 --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"skiff.dev/simulated-readiness":"pass"}}}}}'
kubectl rollout status deployment slow -n lab-10 --timeout=60s`,
      check: async (look) => {
        const { status, spec } = (await look.get(deployments, 'slow')) ?? {}
        const isProbed = spec?.template.spec?.containers.every(({ readinessProbe }) => readinessProbe !== undefined) ?? false
        return passes(
          status?.availableReplicas === 1 && status.updatedReplicas === 1 && isProbed,
          `${status?.readyReplicas ?? 0} of ${status?.replicas ?? 0} pods ready${isProbed ? '' : ', and the probe was taken away'}`,
        )
      },
    },
  ],
}
