/**
 * prometheus-operator and its admission webhook against a simulated cluster. `run` builds its programs into WORK/bin and names the MODULE's directory. The pods of
 * a Prometheus and an Alertmanager run on simulated nodes, which start no container: nothing is scraped, and no reloader reads the configuration.
 */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { openSsl } from '../../support/openssl.ts'
import { install, kubeconfigOf } from '../support/install.ts'
import { type ApiObject, apply, hasCondition, kubectl, list, read, refusal, step, until } from '../support/kubectl.ts'
import { freePort, Program, whileRunning } from '../support/program.ts'
import { alertmanager, alertmanagerConfig, conversion, prometheus, rule, ruleWebhook, service, serviceAccount, serviceMonitor } from './objects.ts'

const namespace = 'default'
const { MODULE = '' } = process.env
const fromModule = (file: string) => fs.readFileSync(path.join(MODULE, file), 'utf8')

interface StatefulSet extends ApiObject {
  readonly spec: { readonly replicas: number }
}
interface WithPhase extends ApiObject {
  readonly status: ApiObject['status'] & { readonly phase: string }
}
interface WithData {
  readonly data?: Readonly<Record<string, string>>
}

const openssl = openSsl()
const authority = openssl.authority('webhook')
const { cert, key } = openssl.sign(authority, { subject: '/CN=webhook', usage: 'serverAuth', names: 'IP:127.0.0.1' })
const webhookPort = await freePort()
const tls = ['--web.enable-tls=true', `--web.cert-file=${openssl.file('tls.crt', cert)}`, `--web.key-file=${openssl.file('tls.key', key)}`]

await install(fromModule('bundle.yaml'))
await apply(serviceAccount)
const kubeconfig = await kubeconfigOf(namespace, 'prometheus-operator')
const flags = ['--kubelet-service=kube-system/kubelet', '--kubelet-endpoints=true', `--web.listen-address=127.0.0.1:${await freePort()}`]
const programs = [
  new Program('operator', 'operator', flags, { KUBECONFIG: kubeconfig }),
  new Program('admission-webhook', 'admission-webhook', [`--web.listen-address=127.0.0.1:${webhookPort}`, ...tls]),
]

/** The configuration that the operator wrote for the Prometheus. */
async function configuration(): Promise<string> {
  const { data = {} } = await read<WithData>('secret', 'prometheus-main')
  return gunzipSync(Buffer.from(data['prometheus.yaml.gz'] ?? '', 'base64')).toString()
}

const isAvailable = async (kind: string) => {
  await until(
    `${kind} main is available`,
    () => read(kind, 'main'),
    (object) => hasCondition(object, 'Available') && hasCondition(object, 'Reconciled'),
  )
}

const namesOf = async (kind: string) => (await list(kind)).map(({ metadata }) => metadata.name).sort()
const phasesOf = async (kind: string) => (await list<WithPhase>(kind)).map(({ metadata, status }) => `${metadata.name} ${status.phase}`).sort()

async function availability(): Promise<void> {
  await step('CRD-08 a Prometheus gets its StatefulSet, whose pods run with their claims, and becomes available', async () => {
    await apply(prometheus)
    await isAvailable('prometheus')
    const { spec, metadata } = await read<StatefulSet>('statefulset', 'prometheus-main')
    assert.deepEqual([spec.replicas, metadata.ownerReferences?.map(({ kind, name }) => `${kind} ${name}`)], [2, ['Prometheus main']])
    assert.deepEqual(await phasesOf('pods'), ['prometheus-main-0 Running', 'prometheus-main-1 Running'])
    assert.deepEqual(await phasesOf('pvc'), ['prometheus-main-db-prometheus-main-0 Bound', 'prometheus-main-db-prometheus-main-1 Bound'])
    await read('service', 'prometheus-operated')
    assert.match(await configuration(), /scrape_interval: 45s/)
  })
}

async function discovery(): Promise<void> {
  await step('CRD-08 a ServiceMonitor enters the configuration, and leaves it', async () => {
    await apply(service, serviceMonitor)
    const job = /job_name: serviceMonitor\/default\/web\/0\n[\s\S]*metrics_path: \/stats/
    await until('the job is in the configuration', configuration, (text) => job.test(text))
    await kubectl(['delete', 'servicemonitor', 'web'])
    await until('the job left the configuration', configuration, (text) => !text.includes('serviceMonitor/'))
  })

  await step('CRD-08 a PrometheusRule enters the ConfigMap of rules', async () => {
    await apply(rule('web', 'up == 0'))
    const rules = () => read<WithData>('configmap', 'prometheus-main-rulefiles-0')
    await until('the rule is there', rules, ({ data = {} }) => Object.values(data).some((text) => text.includes('WebIsDown')))
  })

  await step('CRD-08 the Endpoints of the kubelets have the address of each node', async () => {
    type Endpoints = { subsets?: readonly { addresses: readonly { targetRef: { name: string } }[] }[] }
    const ask = () => read<Endpoints>('endpoints', 'kubelet', '-n', 'kube-system')
    const { subsets = [] } = await until('the Endpoints are written', ask, (one) => (one.subsets ?? []).length > 0)
    assert.deepEqual(subsets.flatMap(({ addresses }) => addresses.map(({ targetRef }) => targetRef.name)).sort(), await namesOf('nodes'))
  })
}

async function webhooks(): Promise<void> {
  await step('CRD-08 the webhook for rules refuses an invalid expression, and kubectl prints the cause', async () => {
    await apply(ruleWebhook(webhookPort, authority.cert))
    await until(
      'the rule is refused',
      () => refusal(rule('broken', 'up ==')),
      (text) => /could not parse expression/.test(text),
    )
    await apply(rule('web', 'up == 1'))
  })

  await step('CRD-04 the webhook for conversions serves an AlertmanagerConfig in its other version', async () => {
    await install(fromModule('example/prometheus-operator-crd-full/monitoring.coreos.com_alertmanagerconfigs.yaml'))
    const patch = JSON.stringify(conversion(webhookPort, authority.cert))
    await kubectl(['patch', 'crd', 'alertmanagerconfigs.monitoring.coreos.com', '--type=merge', '-p', patch])
    await until('the object is created', () => apply(alertmanagerConfig).then(() => true), Boolean)
    type Config = { apiVersion: string; spec: { route: { receiver: string }; muteTimeIntervals?: unknown; timeIntervals?: readonly { name: string }[] } }
    const ask = () => read<Config>('alertmanagerconfigs.v1beta1.monitoring.coreos.com', 'web')
    const { apiVersion, spec } = await until('v1beta1 is served', ask, ({ spec }) => spec.timeIntervals !== undefined)
    assert.deepEqual([apiVersion, spec.timeIntervals?.[0]?.name, spec.muteTimeIntervals], ['monitoring.coreos.com/v1beta1', 'nights', undefined])
  })
}

async function scale(): Promise<void> {
  await step('CRD-08 the scale of a Prometheus counts its shards, each of which is a StatefulSet', async () => {
    await kubectl(['scale', 'prometheus/main', '--replicas=2'])
    const names = () => namesOf('statefulsets')
    await until('the second shard is there', names, (all) => all.join() === 'prometheus-main,prometheus-main-shard-1')
    await kubectl(['scale', 'prometheus/main', '--replicas=1'])
    await until('the second shard is gone', names, (all) => all.join() === 'prometheus-main')
  })
}

async function removal(): Promise<void> {
  await step('CRD-08 an Alertmanager becomes available, and StatefulSets and pods are deleted with their owners', async () => {
    await apply(alertmanager)
    await isAvailable('alertmanager')
    await kubectl(['delete', 'alertmanager,prometheus', 'main'])
    for (const kind of ['statefulsets', 'pods'])
      await until(
        `the ${kind} are gone`,
        () => namesOf(kind),
        (names) => names.length === 0,
      )
  })
}

await whileRunning(programs, async () => {
  for (const part of [availability, discovery, webhooks, scale, removal]) await part()
})
openssl.remove()
