/** Gatekeeper against a simulated cluster. `run` builds it into WORK/bin and names the MANIFEST of its module. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { install, kubeconfigOf, serveFromHost } from '../support/install.ts'
import { type ApiObject, apply, kubectl, list, read, refusal, step, until } from '../support/kubectl.ts'
import { freePort, Program, whileRunning } from '../support/program.ts'
import { celConstraint, celTemplate, configMap, mutation, pod, programPod, regoConstraint, regoTemplate } from './objects.ts'

const { WORK = '', MANIFEST = '' } = process.env
const system = 'gatekeeper-system'
const parts = ['webhook', 'audit'] as const
const certificates = path.join(WORK, 'certs')
const auditCache = path.join(WORK, 'audit')

interface ByPod {
  readonly status?: { readonly byPod?: readonly { readonly id: string; readonly observedGeneration?: number }[] }
}
interface Audited extends ApiObject {
  readonly status?: ApiObject['status'] & { readonly violations?: readonly { readonly name: string; readonly message: string }[] }
}

for (const directory of [certificates, auditCache]) fs.mkdirSync(directory)
await apply(pod('older', 'example.com/app:latest'))
await install(fs.readFileSync(MANIFEST, 'utf8'))
// Its statuses are owned by the pod of the program.
await apply(...parts.map((part) => programPod(`gatekeeper-${part}`, system)))
const port = await freePort()
await serveFromHost(system, 'gatekeeper-webhook-service', 'https-webhook-server', port)
const kubeconfig = await kubeconfigOf(system, 'gatekeeper-admin')
const operations = { webhook: ['webhook', 'mutation-webhook'], audit: ['audit', 'status', 'mutation-status', 'generate'] }
const flags = {
  webhook: [`--port=${port}`, `--exempt-namespace=${system}`],
  audit: ['--disable-cert-rotation', '--audit-interval=3', `--api-cache-dir=${auditCache}`, '--default-wait-for-vapb-generation=1'],
}

async function start(part: (typeof parts)[number]): Promise<Program> {
  const ports = [`--health-addr=127.0.0.1:${await freePort()}`, `--prometheus-port=${await freePort()}`]
  const common = [`--kubeconfig=${kubeconfig}`, `--cert-dir=${certificates}`, ...ports, ...operations[part].map((one) => `--operation=${one}`)]
  return new Program(part, 'gatekeeper', [...common, ...flags[part]], { POD_NAME: `gatekeeper-${part}`, POD_NAMESPACE: system })
}

/** Writes the Secret's entries into the directory, as the kubelet would. */
async function mountCertificates(): Promise<void> {
  const ask = () => read<{ data?: Readonly<Record<string, string>> }>('secret', 'gatekeeper-webhook-server-cert', '-n', system)
  const { data = {} } = await until('the webhook stores its certificate', ask, ({ data }) => data?.['tls.crt'] !== undefined)
  for (const [name, text] of Object.entries(data)) fs.writeFileSync(path.join(certificates, name), Buffer.from(text, 'base64'), { mode: 0o600 })
}

const isSeenByAll = ({ status }: ByPod) => parts.every((part) => status?.byPod?.some(({ id }) => id === `gatekeeper-${part}`))

const programs = [await start('webhook')]
await whileRunning(programs, async () => {
  await step('ADM-05 Gatekeeper makes its certificate and writes the CA into its webhooks', async () => {
    await mountCertificates()
    programs.push(await start('audit'))
    for (const kind of ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations']) {
      const ask = () => list<{ webhooks: readonly { clientConfig: { caBundle?: string } }[] }>(kind)
      const hasCa = (all: Awaited<ReturnType<typeof ask>>) => all.flatMap(({ webhooks }) => webhooks).every(({ clientConfig }) => clientConfig.caBundle)
      await until(`${kind} have the CA`, ask, hasCa)
    }
  })

  await step('ADM-05 a ConstraintTemplate becomes a kind of constraints, which both programs enforce', async () => {
    await until('the webhook answers', () => apply(regoTemplate).then(() => true), Boolean)
    await until('the constraint can be created', () => apply(regoConstraint).then(() => true), Boolean)
    await until('both programs report the constraint', () => read<ByPod>('nolatesttag', 'no-latest'), isSeenByAll)
  })

  await step('ADM-05 a constraint denies an image with the tag latest, with its message', async () => {
    const denied = /admission webhook "validation\.gatekeeper\.sh" denied the request: \[no-latest\] container <main> has the image <example\.com\/app:latest>/
    await until(
      'the pod is denied',
      () => refusal(pod('newer', 'example.com/app:latest')),
      (text) => denied.test(text),
    )
    await apply(pod('pinned', 'example.com/app:1.0'))
    await kubectl(['create', 'namespace', 'other'])
    await apply(pod('elsewhere', 'example.com/app:latest', 'other'))
  })

  await step('ADM-05 audit reports the violation of an older object in the status of the constraint', async () => {
    const { status } = await until(
      'audit reports',
      () => read<Audited>('nolatesttag', 'no-latest'),
      ({ status }) => status?.violations?.length === 1,
    )
    assert.deepEqual(
      status?.violations?.map(({ name, message }) => [name, message]),
      [['older', 'container <main> has the image <example.com/app:latest>']],
    )
  })

  await step('ADM-05 a mutation adds a label to new pods', async () => {
    await apply(mutation)
    const dryRun = async () =>
      JSON.parse(await kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], JSON.stringify(pod('labelled', 'a:1')))) as ApiObject
    await until('new pods have the label', dryRun, ({ metadata }) => metadata.labels?.owner === 'platform')
  })

  await step('ADM-05 a template in CEL becomes a ValidatingAdmissionPolicy, which the API server enforces', async () => {
    await apply(celTemplate)
    await until('the constraint can be created', () => apply(celConstraint).then(() => true), Boolean)
    const denied = /ValidatingAdmissionPolicy 'gatekeeper-needsteam' with binding 'gatekeeper-needsteam-needs-team' denied request: object <bare> has no team/
    await until(
      'the policy denies',
      () => refusal(configMap('bare')),
      (text) => denied.test(text),
    )
    await apply(configMap('owned', { team: 'a' }))
  })

  await step('ADM-05 a deleted template takes its kind and its policy along', async () => {
    await kubectl(['delete', 'constrainttemplate', 'needsteam'])
    const definitions = () => list('customresourcedefinitions')
    await until('the kind is gone', definitions, (all) => all.every(({ metadata }) => metadata.name !== 'needsteam.constraints.gatekeeper.sh'))
    await until(
      'the policy is gone',
      () => list('validatingadmissionpolicies'),
      (all) => all.length === 0,
    )
    await apply(configMap('bare'))
  })
})
