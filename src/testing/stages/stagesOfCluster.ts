/** Brings Stages into a test cluster (testing): the kind, the Stages themselves, and the life of who plays them. */
import type { UserInfo } from '#apiserver/core/request'
import { customResourceDefinitions } from '#client/builtIn'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { ClusterTools } from '../controlPlane.ts'
import type { Life } from '../part.ts'
import { defaultStages } from './defaultStages.ts'
import { playStages, templateFunctionNames } from './player.ts'
import { compileStage, parseStages } from './stage.ts'
import { stageDefinition, stages } from './stageDefinition.ts'

/**
 * @param source true: the built-in ones; else YAML with Stages of one's own, and no others
 * @throws StageError naming what is not understood
 */
export async function addStages(client: Client, source: true | string, until: (check: () => Promise<boolean>) => Promise<unknown>): Promise<void> {
  const wanted = parseStages(source === true ? defaultStages : source)
  for (const stage of wanted) compileStage(stage, templateFunctionNames)
  await client.of(customResourceDefinitions).create(stageDefinition)
  await until(async () => {
    const { status } = await client.of(customResourceDefinitions).get(stageDefinition.metadata as { name: string })
    return status?.conditions?.some(({ type, status: isTrue }) => type === 'Established' && isTrue === 'True') ?? false
  })
  for (const stage of wanted) await client.of(stages).create(stage)
}

const player: UserInfo = { name: 'system:serviceaccount:kube-system:kwok-controller', groups: ['system:masters', 'system:authenticated'] }

/** Lives as KWOK's controller. */
export async function liveAsStagePlayer({ clock, random, log, minWatchSeconds }: ClusterTools, life: Life): Promise<void> {
  const client = createClient(life.link(player, 'kwok-controller'))
  await playStages({ client, clock, random: random('stages'), log: log.with('stages'), minWatchSeconds }, life.signal)
}
