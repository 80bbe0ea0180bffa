/**
 * Inside of a pod, connect() finds the service account's token, authority and namespace by itself, and reads the token anew when it changes. What
 * client-go's example in-cluster-client-configuration does. Run it with: node inCluster.js
 */
import { connect, isStatus, pods } from 'skiff/client'

await using connection = await connect({ userAgent: 'in-cluster-example' })
const client = connection.client.of(pods)
const { items } = await client.list()
console.log(`There are ${items.length} pods in the cluster`)
try {
  await client.get({ namespace: connection.namespace, name: 'example-xxxxx' })
  console.log('Found the pod example-xxxxx')
} catch (error) {
  if (!isStatus(error, 'NotFound')) throw error
  console.log(`No pod example-xxxxx in ${connection.namespace}`)
}
