/** A cluster whose nodes serve Services with iptables: the rules that iptables-save(8) prints on a node, and a change to nftables and back. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { viewNode } from '../robustness/node/support/nodeView.ts'
import { eventually, hostTraces, LocalCluster, newTraces, obstacleToCluster } from './support/localCluster.ts'
import { webManifests, writeWebImage } from './support/webImage.ts'

const name = 'e2e-iptables'
const skip = obstacleToCluster(true)
const options = { skip, timeout: 300_000 }
let cluster: LocalCluster
let traces: ReturnType<typeof hostTraces>

before(async () => {
  if (skip) return
  traces = hostTraces()
  cluster = await LocalCluster.start(name, ['--nodes', '1', '--proxy-mode', 'iptables'])
})

after(async () => {
  if (skip) return
  await cluster?.delete()
  assert.deepEqual(newTraces(traces), {})
})

const onNode = (...command: readonly [string, ...string[]]) => viewNode(cluster, name).run(...command)
const field = (path: string) => cluster.must(['get', 'service', 'web-service', '-o', `jsonpath={${path}}`])

async function answers(): Promise<string> {
  const address = await cluster.must(['get', 'node', '-o', 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'])
  const url = `http://${address}:${await field('.spec.ports[0].nodePort')}/`
  return eventually(
    'an answer by node port',
    20_000,
    () =>
      fetch(url, { signal: AbortSignal.timeout(3000) })
        .then((response) => response.text())
        .catch(String),
    (text) => text.startsWith('one web-app-'),
  )
}

test('SVC-05 iptables-save on a node shows upstream’s chains for the Service of the reference documents', options, async () => {
  const loaded = await cluster.skiff(['image', 'load', '--name', name, ...(await writeWebImage(cluster.dir, ['1.0']))])
  assert.equal(loaded.code, 0, loaded.stderr)
  await cluster.mustWith(webManifests('web-app:1.0'), ['apply', '-f', '-'])
  await cluster.must(['rollout', 'status', 'deployment/web-app', '--timeout=60s'])
  await answers()
  const pods = (await cluster.must(['get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].status.podIP}'])).split(' ').sort()
  assert.equal(pods.length, 3)
  const rules = (await onNode('iptables-save', '-t', 'nat')).split('\n').filter((line) => line.includes('default/web-service'))
  const withoutRange = rules.map((rule) => rule.replace(/ ! -s \S+/, ' ! -s PODS'))
  const [ip, balancerIp, nodePort] = await Promise.all([
    field('.spec.clusterIP'),
    field('.status.loadBalancer.ingress[0].ip'),
    field('.spec.ports[0].nodePort'),
  ])
  const hash = 'SZGXCNNBZLC4E3DM'
  const comment = (text: string) => `-m comment --comment "default/web-service${text}"`
  const chainOf = (pod: string) => rules.find((rule) => rule.endsWith(`--to-destination ${pod}:8080`))?.split(' ')[1] ?? 'none'
  const chances = [' -m statistic --mode random --probability 0.33333333349', ' -m statistic --mode random --probability 0.50000000000', '']
  assert.deepEqual(
    withoutRange.sort(),
    [
      `-A KUBE-EXT-${hash} -m comment --comment "masquerade traffic for default/web-service external destinations" -j KUBE-MARK-MASQ`,
      `-A KUBE-NODEPORTS -p tcp ${comment('')} -m tcp --dport ${nodePort} -j KUBE-EXT-${hash}`,
      `-A KUBE-SERVICES -d ${ip}/32 -p tcp ${comment(' cluster IP')} -m tcp --dport 80 -j KUBE-SVC-${hash}`,
      `-A KUBE-SERVICES -d ${balancerIp}/32 -p tcp ${comment(' loadbalancer IP')} -m tcp --dport 80 -j KUBE-EXT-${hash}`,
      `-A KUBE-SVC-${hash} ! -s PODS -d ${ip}/32 -p tcp ${comment(' cluster IP')} -m tcp --dport 80 -j KUBE-MARK-MASQ`,
      ...pods.flatMap((pod, i) => [
        `-A KUBE-SVC-${hash} ${comment(` -> ${pod}:8080`)}${chances[i]} -j ${chainOf(pod)}`,
        `-A ${chainOf(pod)} -s ${pod}/32 ${comment('')} -j KUBE-MARK-MASQ`,
        `-A ${chainOf(pod)} -p tcp ${comment('')} -m tcp -j DNAT --to-destination ${pod}:8080`,
      ]),
    ].sort(),
  )
  for (const pod of pods) assert.match(chainOf(pod), /^KUBE-SEP-[A-Z2-7]{16}$/)
})

test('SVC-05 another start with --proxy-mode removes the rules of the mode before', options, async () => {
  const restart = async (mode: string) => {
    assert.equal((await cluster.skiff(['stop', name])).code, 0)
    const { code, stderr } = await cluster.skiff(['start', name, '--proxy-mode', mode])
    assert.equal(code, 0, stderr)
    await answers()
  }
  await restart('nftables')
  assert.match(await onNode('nft', 'list', 'tables'), /table ip kube-proxy/)
  for (const save of ['iptables-save', 'ip6tables-save'] as const) assert.doesNotMatch((await onNode(save)).replaceAll('KUBE-FIREWALL', ''), /KUBE-/)
  await restart('iptables')
  assert.doesNotMatch(await onNode('nft', 'list', 'tables'), /kube-proxy/)
  assert.match(await onNode('iptables-save', '-t', 'nat'), /-A KUBE-SERVICES .*default\/web-service cluster IP/)
})
