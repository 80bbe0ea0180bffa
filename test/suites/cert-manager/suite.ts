/** cert-manager against a simulated cluster. `run` builds its program into WORK/bin and names the CHART of its module. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import path from 'node:path'
import { newestPair, packagedProgram } from '../../support/packagedPrograms.ts'
import { install, kubeconfigOf, serveFromHost } from '../support/install.ts'
import { apply, hasCondition, kubectl, list, read, refusal, step, until } from '../support/kubectl.ts'
import { freePort, Program, whileRunning } from '../support/program.ts'
import { caIssuer, certificate, ingress, issuer, namespace } from './objects.ts'

const skipped = 77
const system = 'cert-manager'
const webhookService = 'cert-manager-webhook'
const { CHART = '' } = process.env

const helm = packagedProgram(newestPair, 'helm')
if (helm === undefined) {
  console.log('no package has Helm for this machine')
  process.exit(skipped)
}
const values = ['--set', 'crds.enabled=true,startupapicheck.enabled=false']
const manifest = execFileSync(path.join(helm, 'helm'), ['template', 'cert-manager', CHART, '-n', system, ...values], { encoding: 'utf8' })
await kubectl(['create', 'namespace', system])
await install(manifest)

const [port, healthPort] = [await freePort(), await freePort()]
await serveFromHost(system, webhookService, 'https', port)
const names = [webhookService, `${webhookService}.${system}`, `${webhookService}.${system}.svc`].map((name) => `--dynamic-serving-dns-names=${name}`)
const secretOfCa = [`--dynamic-serving-ca-secret-namespace=${system}`, `--dynamic-serving-ca-secret-name=${webhookService}-ca`]
const ports = [`--secure-port=${port}`, `--healthz-port=${healthPort}`, '--metrics-listen-address=0']
const start = async (part: string, account: string, args: readonly string[]) =>
  new Program(part, 'cert-manager', [part, `--kubeconfig=${await kubeconfigOf(system, account)}`, ...args])
const programs = [
  await start('webhook', webhookService, [...names, ...secretOfCa, ...ports]),
  await start('cainjector', 'cert-manager-cainjector', []),
  await start('controller', 'cert-manager', []),
]

const isReady = async (kind: string, name: string) => {
  await until(
    `${kind} ${name} is ready`,
    () => read(kind, name),
    (object) => hasCondition(object, 'Ready'),
  )
}

/** The certificates in an entry of the Secret, from the first to the last. */
async function certificatesIn(secret: string, entry: 'tls.crt' | 'ca.crt'): Promise<X509Certificate[]> {
  const { data } = await read<{ data: Record<string, string> }>('secret', secret)
  const text = Buffer.from(data[entry] ?? '', 'base64').toString()
  return (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((pem) => new X509Certificate(pem))
}

await whileRunning(programs, async () => {
  await step('CRD-08 the cainjector writes the CA of the webhook into the webhook configurations', async () => {
    const { data } = await until(
      'the webhook stores its CA',
      () => read<{ data: Record<string, string> }>('secret', `${webhookService}-ca`, '-n', system),
      Boolean,
    )
    for (const kind of ['validatingwebhookconfiguration', 'mutatingwebhookconfiguration']) {
      const ask = () => read<{ webhooks: readonly { clientConfig: { caBundle?: string } }[] }>(kind, webhookService)
      await until(`${kind} has the CA`, ask, ({ webhooks }) => webhooks.every(({ clientConfig }) => clientConfig.caBundle === data['ca.crt']))
    }
  })

  await step('CRD-08 a self-signed Issuer makes a Certificate of a CA ready', async () => {
    await until('the webhook answers', () => apply(issuer('self', { selfSigned: {} })).then(() => true), Boolean)
    await isReady('issuer', 'self')
    await apply(certificate('root', 'self', { isCA: true, commonName: 'root', subject: { organizations: ['Example'] } }))
    await isReady('certificate', 'root')
    const [root] = await certificatesIn('root', 'tls.crt')
    assert.ok(root?.ca && root.checkIssued(root) && root.verify(root.publicKey), 'the root signed itself')
  })

  await step('CRD-08 CA Issuers make Certificates ready, and the Secret of the last holds the chain', async () => {
    await apply(caIssuer('root', 'root'))
    await isReady('issuer', 'root')
    await apply(certificate('intermediate', 'root', { isCA: true, commonName: 'intermediate' }))
    await isReady('certificate', 'intermediate')
    await apply(caIssuer('intermediate', 'intermediate'), certificate('leaf', 'intermediate', { dnsNames: ['leaf.example.com'] }))
    await isReady('certificate', 'leaf')
    const [[root], [leaf, intermediate, ...rest]] = [await certificatesIn('leaf', 'ca.crt'), await certificatesIn('leaf', 'tls.crt')]
    assert.ok(root && leaf && intermediate && rest.length === 0, 'a root, an intermediate and a leaf')
    assert.deepEqual([root.subject.includes('CN=root'), intermediate.subject, leaf.subjectAltName], [true, 'CN=intermediate', 'DNS:leaf.example.com'])
    assert.ok(leaf.verify(intermediate.publicKey) && intermediate.verify(root.publicKey), 'each signed the next')
  })

  await step('CRD-08 the requests of a Certificate are approved, owned and removed with it', async () => {
    const requests = async () =>
      (await list('certificaterequest')).filter(({ metadata }) => metadata.ownerReferences?.some(({ kind, name }) => kind === 'Certificate' && name === 'leaf'))
    const found = await requests()
    assert.ok(found.length === 1 && found.every((request) => hasCondition(request, 'Approved') && hasCondition(request, 'Ready')), JSON.stringify(found))
    await kubectl(['delete', 'certificate', 'leaf'])
    await until('the garbage collector deletes the request', requests, (left) => left.length === 0)
  })

  await step('CRD-08 an Ingress with the annotation of an Issuer gets its Certificate', async () => {
    await apply(ingress)
    await isReady('certificate', 'web-tls')
    const [leaf] = await certificatesIn('web-tls', 'tls.crt')
    assert.equal(leaf?.subjectAltName, 'DNS:web.example.com')
  })

  await step('CRD-08 the webhook refuses a Certificate without a subject and an Issuer of two kinds', async () => {
    const text = await refusal(certificate('nobody', 'root', {}))
    assert.match(text, /admission webhook "webhook\.cert-manager\.io" denied the request: spec: Invalid value: "": at least one of commonName/)
    const kinds = {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Issuer',
      metadata: { name: 'both', namespace },
      spec: { selfSigned: {}, ca: { secretName: 'root' } },
    }
    assert.match(await refusal(kinds), /denied the request: spec\.selfSigned: Forbidden: may not specify more than one issuer type/)
  })
})
