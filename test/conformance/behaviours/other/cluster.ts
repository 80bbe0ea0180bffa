/** The shape of a cluster, and what pods know of their account. Upstream: test/e2e/architecture/conformance.go, test/e2e/auth/service_accounts.go. */
import assert from 'node:assert/strict'
import { nodes, serviceAccounts } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'

export const clusterShape: BehaviourGroup = {
  sig: 'sig-architecture',
  title: 'Cluster shape',
  rows: ['ARC-02'],
  behaviours: [
    {
      name: 'at least two untainted nodes',
      run: async ({ client }) => {
        const { items } = await client.of(nodes).list()
        const usable = items.filter(
          ({ spec, status }) => !spec.unschedulable && !spec.taints && status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
        )
        assert.ok(usable.length >= 2)
      },
    },
  ],
}

const mount = '/var/run/secrets/kubernetes.io/serviceaccount'

export const podAccounts: BehaviourGroup = {
  sig: 'sig-auth',
  title: 'ServiceAccounts in pods',
  rows: ['AUN-03', 'AUN-08'],
  behaviours: [
    {
      name: 'token, CA and namespace mounted',
      run: async (context) => {
        await context.create(serviceAccounts, { metadata: { name: 'mine' } })
        const pod = await context.readyPod({ script: 'sleep 600', spec: { serviceAccountName: 'mine' } })
        const read = (file: string) => context.execText(pod.metadata.name ?? '', `cat ${mount}/${file}`)
        assert.equal(await read('namespace'), context.namespace)
        assert.match(await read('ca.crt'), /^-----BEGIN CERTIFICATE-----/)
        const [, payload = ''] = (await read('token')).split('.')
        const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { sub: string; 'kubernetes.io': { pod: { name: string } } }
        assert.equal(claims.sub, `system:serviceaccount:${context.namespace}:mine`)
        assert.equal(claims['kubernetes.io'].pod.name, pod.metadata.name)
      },
    },
    {
      name: 'projected token volume',
      run: async (context) => {
        const volumes = [
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'mine/token', audience: 'somebody', expirationSeconds: 600 } }] } },
        ]
        const container = { volumeMounts: [{ name: 'token', mountPath: '/token' }] }
        const spec = { volumes, securityContext: { runAsUser: 1000, fsGroup: 1000 } }
        const [mode, token = ''] = (await context.outputOf({ script: 'stat -L -c %a /token/mine/token; cat /token/mine/token', container, spec })).split('\n')
        assert.equal(mode, '640')
        const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { aud: string[]; exp: number; iat: number }
        assert.deepEqual(claims.aud, ['somebody'])
        assert.equal(claims.exp - claims.iat, 600)
      },
    },
  ],
}
