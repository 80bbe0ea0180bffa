/**
 * An informer of @kubernetes/client-node over the ConfigMaps of a namespace, used as its documentation says: started again after an error.
 * Prints what it knows, as one JSON object of name to value per line, after every change. Lines on standard input are applied: `name value`.
 */
import './node22.mjs'
import { createInterface } from 'node:readline'
import { CoreV1Api, KubeConfig, KubernetesObjectApi, makeInformer, PatchStrategy } from '@kubernetes/client-node'

const [namespace] = process.argv.slice(2)
const config = new KubeConfig()
config.loadFromDefault()
const core = config.makeApiClient(CoreV1Api)
const objects = KubernetesObjectApi.makeApiClient(config)
const known = new Map()
const restartMs = 50

const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () => core.listNamespacedConfigMap({ namespace }))
const print = () => process.stdout.write(`${JSON.stringify(Object.fromEntries([...known].sort()))}\n`)
const put = (object) => {
  known.set(object.metadata.name, object.data?.value ?? '')
  print()
}
informer.on('add', put)
informer.on('update', put)
informer.on('delete', (object) => {
  known.delete(object.metadata.name)
  print()
})
const start = () => informer.start().catch(again)
const again = () => setTimeout(start, restartMs)
informer.on('error', again)

async function apply(name, value) {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { value } }
  try {
    await objects.patch(object, undefined, undefined, 'javascript-client', true, PatchStrategy.ServerSideApply)
  } catch {
    setTimeout(() => apply(name, value), restartMs)
  }
}

createInterface({ input: process.stdin }).on('line', (line) => apply(...line.split(' ')))
await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'created' }, data: { value: '1' } } })
await start()
