/** Users and privileges of containers. Upstream: test/e2e/common/node/security_context.go. */
import assert from 'node:assert/strict'
import { type BehaviourGroup, table } from '../behaviour.ts'
import type { PodInput } from '../context.ts'

const rows: readonly { readonly name: string; readonly pod: PodInput; readonly output: RegExp }[] = [
  { name: 'runAsUser 65534', pod: { script: 'id -u', container: { securityContext: { runAsUser: 65534 } } }, output: /^65534$/ },
  {
    name: 'privileged false',
    pod: { script: 'ip link add dummy0 type dummy || true', container: { securityContext: { privileged: false } } },
    output: /Operation not permitted/,
  },
  {
    name: 'writable rootfs when not read-only',
    pod: { script: 'echo written > /file && cat /file', container: { securityContext: { readOnlyRootFilesystem: false } } },
    output: /^written$/,
  },
  {
    name: 'container runAsUser+Group',
    pod: { script: 'id', container: { securityContext: { runAsUser: 1001, runAsGroup: 2002 } } },
    output: /^uid=1001 gid=2002/,
  },
  { name: 'pod runAsUser+Group', pod: { script: 'id', spec: { securityContext: { runAsUser: 1001, runAsGroup: 2002 } } }, output: /^uid=1001 gid=2002/ },
  {
    name: 'no privilege escalation',
    pod: { script: 'grep NoNewPrivs /proc/self/status', container: { securityContext: { runAsUser: 1000, allowPrivilegeEscalation: false } } },
    output: /^NoNewPrivs:\s+1$/,
  },
]

export const securityContext: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Security context',
  rows: ['KUB-19'],
  behaviours: table(rows, ({ name, pod, output }) => ({
    name,
    run: async ({ outputOf }) => assert.match(await outputOf(pod), output),
  })),
}
