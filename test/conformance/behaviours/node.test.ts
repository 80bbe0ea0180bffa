import { nodeBehaviours } from './index.ts'
import { runBehaviours } from './run.ts'

runBehaviours('behave-node', nodeBehaviours)
