/** The default roles admin, edit and view are aggregated, and a user bound to one has its permissions. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isStatus } from '#api/machinery/status'
import type { UserInfo } from '#apiserver/core/request'
import { createSecurity } from '#apiserver/security'
import { noLog } from '#base/log'
import { noMetrics } from '#base/metrics'
import { seededRandom } from '#base/random'
import { clusterRoles, configMaps, roleBindings, secrets } from '#client/builtIn'
import { clusterRoleAggregation } from '#controllers/clusterRoleAggregation'
import { createControllerManager } from '#controllers/framework/manager'
import { startTestApiServer } from '#testing/apiServer'
import { realClock } from '#testing/realClock'
import { controllerClients, eventually, testServiceAccountKey } from '../controllers/cluster.ts'

test('AUZ-01 a user with the role edit may edit in that namespace, and one with view may only look', async () => {
  const serviceAccountKey = testServiceAccountKey()
  const random = seededRandom(1)
  const api = await startTestApiServer({ deps: (registry) => createSecurity({ reader: registry.reader, clock: realClock, random, serviceAccountKey }) })
  const stop = new AbortController()
  const manager = createControllerManager(
    { client: api.client, clientFor: controllerClients(api), clock: realClock, random, log: noLog, metrics: noMetrics },
    [clusterRoleAggregation],
    {},
  )
  const running = manager.run(stop.signal)
  try {
    const bind = (user: string, role: string) =>
      api.client.of(roleBindings).create({
        metadata: { namespace: 'default', name: user },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      })
    await bind('editor', 'edit')
    await bind('viewer', 'view')
    const rulesOf = async (name: string) => (await api.client.of(clusterRoles).get({ name })).rules?.length ?? 0
    // view's rules reach admin through edit.
    await eventually(
      async () => (await rulesOf('view')) > 0 && (await rulesOf('edit')) > (await rulesOf('view')) && (await rulesOf('admin')) > (await rulesOf('edit')),
    )
    const as = (name: string) => api.clientAs({ name, groups: ['system:authenticated'] } satisfies UserInfo)
    await as('editor')
      .of(configMaps)
      .create({ metadata: { namespace: 'default', name: 'mine' } })
    await as('viewer').of(configMaps).get({ namespace: 'default', name: 'mine' })
    const refusals = [
      as('viewer').of(configMaps).delete({ namespace: 'default', name: 'mine' }),
      as('viewer').of(secrets).list({ namespace: 'default' }),
      as('editor').of(configMaps).list({ namespace: 'kube-system' }),
      as('editor').of(roleBindings).list({ namespace: 'default' }),
    ]
    for (const refusal of refusals) await assert.rejects(refusal, (error) => isStatus(error, 'Forbidden'))
  } finally {
    stop.abort()
    await running
    await api.close()
  }
})
