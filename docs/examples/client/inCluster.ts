/**
 * Inside of a pod, connect() finds the service account's token, authority and namespace by itself, and reads the token again when it changes. What
 * client-go's example in-cluster-client-configuration does. Run it with the name of a pod to look for: node inCluster.js POD
 */
import { connect, isStatus, pods } from 'skiff-kubernetes/client'

const [name = 'example'] = process.argv.slice(2)
await using connection = await connect({ userAgent: 'in-cluster-example' })
const client = connection.client.of(pods)
const { items } = await client.list()
console.log(`There are ${items.length} pods in the cluster`)
try {
  await client.get({ namespace: connection.namespace, name })
  console.log(`Found the pod ${name}`)
} catch (error) {
  if (!isStatus(error, 'NotFound')) throw error
  console.log(`No pod ${name} in ${connection.namespace}`)
}
