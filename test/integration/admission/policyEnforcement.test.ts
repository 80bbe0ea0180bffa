/** The API's answer to a NetworkPolicy says when no node enforces it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodes } from '#client/builtIn'
import { withCluster } from './cluster.ts'
import { postForHeaders } from './wire.ts'

test('NPO-02 creating a policy answers with a warning while all nodes are simulated, and without one in other clusters', () =>
  withCluster(async ({ api }) => {
    const addNode = async (name: string, containerRuntimeVersion: string) => {
      await api.client.of(nodes).create({ metadata: { name }, spec: {} })
      await api.client.of(nodes).patch({ name }, 'merge', { status: { nodeInfo: { containerRuntimeVersion } } }, { subresource: 'status' })
    }
    const { url, ca, token } = await api.listen()
    const policyUrl = `${url}/apis/networking.k8s.io/v1/namespaces/default/networkpolicies`
    const warning = async (name: string) => (await postForHeaders({ url: policyUrl, ca, token }, { metadata: { name }, spec: { podSelector: {} } })).warning
    assert.equal(await warning('no-nodes'), undefined)
    await addNode('simulated', 'simulated://1.0')
    assert.equal(await warning('simulated'), '299 - "network policies are not enforced in this cluster: all its nodes are simulated"')
    await addNode('real', 'containerd://1.6.20')
    assert.equal(await warning('real'), undefined)
  }))
