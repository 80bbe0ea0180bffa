import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from './flags.ts'
import { serverOptions } from './index.ts'

const context = { file: () => assert.fail('no file is named') }
const disabled = async (...pairs: string[]) => {
  const { apiEnablement } = await serverOptions(
    pairs.map((pair) => `--runtime-config=${pair}`),
    context,
  )
  return [...apiEnablement.disabledResources].sort()
}

const off: readonly { readonly pairs: readonly string[]; readonly want: readonly string[] }[] = [
  { pairs: [], want: [] },
  { pairs: ['apps/v1=true,/v1=true', 'api/ga=true', 'api/beta=false'], want: [] },
  { pairs: ['autoscaling/v1=false'], want: ['autoscaling/v1/horizontalpodautoscalers'] },
  { pairs: ['batch/v1=false', 'batch/v1/jobs=true'], want: ['batch/v1/cronjobs'] },
  { pairs: ['batch/v1/jobs=0'], want: ['batch/v1/jobs'] },
]
for (const { pairs, want } of off)
  test(`API-14 turned off by ${JSON.stringify(pairs)}: ${want.length === 0 ? 'nothing' : want}`, async () => assert.deepEqual(await disabled(...pairs), want))

const needed = ['/v1', 'apiregistration.k8s.io/v1', 'discovery.k8s.io/v1', 'flowcontrol.apiserver.k8s.io/v1', 'networking.k8s.io/v1']
const allNeeded = [...needed, 'rbac.authorization.k8s.io/v1', 'scheduling.k8s.io/v1']

const optional: readonly (readonly [pair: string, want: readonly string[]])[] = [
  ['batch/v1=true', []],
  ['certificates.k8s.io/v1beta1=false', []],
  ['certificates.k8s.io/v1beta1=true', ['certificates.k8s.io/v1beta1/clustertrustbundles', 'certificates.k8s.io/v1beta1/podcertificaterequests']],
  ['storagemigration.k8s.io/v1beta1=true', ['storagemigration.k8s.io/v1beta1/storageversionmigrations']],
  ['certificates.k8s.io/v1beta1/podcertificaterequests=true', ['certificates.k8s.io/v1beta1/podcertificaterequests']],
]
for (const [pair, want] of optional)
  test(`API-14 turned on by ${pair}: ${want.length === 0 ? 'nothing' : want}`, async () => {
    const { apiEnablement } = await serverOptions([`--runtime-config=${pair}`], context)
    assert.deepEqual([[...apiEnablement.optionalResources].sort(), [...apiEnablement.disabledResources]], [want, []])
  })

test('API-14 all is off but what is named', async () => {
  const found = await disabled('api/all=false', `apps/v1=true,${allNeeded.map((one) => `${one}=true`).join(',')}`)
  assert.ok(found.includes('batch/v1/jobs') && !found.includes('apps/v1/deployments') && !found.includes('/v1/pods'), found.join())
})

const refused: readonly (readonly [pairs: string, why: string])[] = [
  ['api/all=false', 'invalid runtime-config with only api/all=false'],
  ['api/all=false,apps/v1=true', `runtime-config must leave on what the server itself needs: ${allNeeded.join(', ')}`],
  ['/v1/nodes=false', 'runtime-config must leave on what the server itself needs: /v1'],
  ['api/beta=true', 'invalid value api/beta=true: not all APIs that are off by default are built in'],
  ['resource.k8s.io/v1beta1=true', 'group version resource.k8s.io/v1beta1 that has not been registered'],
  ['example.com/v1=true', 'unknown api groups example.com/v1'],
  ['v1=true', 'runtime-config invalid key v1'],
  ['apps/v1=maybe', 'invalid value of apps/v1: maybe'],
  ['apps/v1/things=false', 'group version apps/v1 has no resource things'],
]
for (const [pairs, why] of refused)
  test(`API-14 refused: --runtime-config=${pairs}`, () => assert.rejects(disabled(pairs), (error) => error instanceof UsageError && error.faults.includes(why)))
