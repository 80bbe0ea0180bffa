/** The ingress of one real node (L5), a process inside the node's namespaces with an identity of its own towards the API. */
import { withoutNils } from '#api/schema/nils'
import { createSharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { createIngress } from '#ingress/ingress'
import { createConfigFile } from '../../apiserver/configFile.ts'
import { live } from '../../pki/livePki.ts'
import { createRealClock } from '../../realClock.ts'
import { processTools, runTogether } from '../processTools.ts'
import { ingressPorts, type NodeIngressConfig } from './ingressConfig.ts'
import { metricsPort } from './metricsPort.ts'

export async function runNodeIngress(configFile: string, verbosity: number, signal: AbortSignal): Promise<void> {
  const file = createConfigFile(configFile, createRealClock())
  const config = JSON.parse(await file.read()) as NodeIngressConfig
  const tools = processTools(config.nodeName, { verbosity })
  const transport = createHttpTransport({
    server: config.server,
    tls: live(() => ({ ca: config.ca, cert: config.clientCert, key: config.clientKey })),
    userAgent: 'skiff-ingress',
    tidy: withoutNils,
    clock: tools.clock,
  })
  file.follow((text) => {
    // Only the certificates ever change while the process runs.
    Object.assign(config, JSON.parse(text) as NodeIngressConfig)
    tools.log.info('Took up renewed certificates')
    void transport.close()
  }, signal)
  const client = createClient(transport)
  const informers = createSharedInformerFactory(client, tools)
  const { nodeName, nodeAddress, defaultCert, defaultKey } = config
  const ingress = createIngress(
    { client, informers, ...tools, log: tools.log.with('ingress') },
    { nodeName, nodeAddress, httpPort: ingressPorts.http, httpsPort: ingressPorts.https, defaultCertificate: { cert: defaultCert, key: defaultKey } },
  )
  await runTogether([ingress, metricsPort(tools), { name: 'ingress informers', run: (until) => informers.run(until) }], tools, signal)
}
