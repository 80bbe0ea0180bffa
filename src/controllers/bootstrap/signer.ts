/**
 * Signs the public cluster-info with every bootstrap token, so that a machine that knows a token can trust what it reads there (L3).
 * Upstream: pkg/controller/bootstrap/bootstrapsigner.go, k8s.io/cluster-bootstrap/token/jws (v1.36).
 */
import { createHmac } from 'node:crypto'
import { ownValue } from '#base/bareMap'
import { configMaps, secrets } from '#client/builtIn'
import type { ControllerContext, ControllerDescriptor } from '../framework/controller.ts'
import { createReconciler } from '../framework/reconciler.ts'
import { isBootstrapToken, signingToken } from './bootstrapToken.ts'

export const bootstrapSigner: ControllerDescriptor = {
  name: 'bootstrap-signer-controller',
  aliases: ['bootstrapsigner'],
  serviceAccount: 'bootstrap-signer',
  disabledByDefault: true,
  create: createSigner,
}

const namespace = 'kube-public'
const name = 'cluster-info'
const key = `${namespace}/${name}`
const signaturePrefix = 'jws-kubeconfig-'

function createSigner(context: ControllerContext) {
  const informer = context.informers.of(configMaps)
  const secretInformer = context.informers.of(secrets)
  const reconciler = createReconciler(context, {
    name: bootstrapSigner.name,
    queueName: 'bootstrap_signer_queue',
    workers: 1,
    async reconcile(_, signal) {
      const object = informer.store.get(key)
      const content = object?.data?.kubeconfig
      if (!object || content === undefined) return undefined
      const tokens = secretInformer.lister
        .list({ namespace: 'kube-system', matches: isBootstrapToken })
        .flatMap((one) => signingToken(one, context.clock.now()) ?? [])
      const unsigned = Object.entries(object.data ?? {}).filter(([entry]) => !entry.startsWith(signaturePrefix))
      const signatures = tokens.map((token): [string, string] => [`${signaturePrefix}${token.id}`, detachedSignature(content, token.id, token.secret)])
      const data = Object.fromEntries([...unsigned, ...signatures])
      const changed =
        Object.keys(data).length !== Object.keys(object.data ?? {}).length || signatures.some(([entry, value]) => ownValue(object.data, entry) !== value)
      if (changed) await context.client.of(configMaps).update({ ...object, data }, { signal })
      return undefined
    },
  })
  reconciler.watch(informer, {
    onAdd: ({ metadata }) => enqueueIfOurs(metadata.namespace, metadata.name),
    onUpdate: (_, { metadata }) => enqueueIfOurs(metadata.namespace, metadata.name),
  })
  const enqueue = (secret: Parameters<typeof isBootstrapToken>[0]) => {
    if (isBootstrapToken(secret)) reconciler.queue.add(key)
  }
  reconciler.watch(secretInformer, { onAdd: enqueue, onUpdate: (_, secret) => enqueue(secret), onDelete: enqueue })
  return reconciler

  function enqueueIfOurs(inNamespace: string | undefined, named: string | undefined): void {
    if (inNamespace === namespace && named === name) reconciler.queue.add(key)
  }
}

/** A JSON Web Signature (HS256) whose content is sent apart from it. */
export function detachedSignature(content: string, tokenId: string, tokenSecret: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: tokenId })).toString('base64url')
  const signed = `${header}.${Buffer.from(content).toString('base64url')}`
  return `${header}..${createHmac('sha256', tokenSecret).update(signed).digest('base64url')}`
}
