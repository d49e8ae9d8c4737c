export { checkTrigger, type TriggerCheck } from './check-trigger.ts';
export type {
  CheckRandom,
  ExpectedFiring,
  MadeObject,
  StoryEvent,
  StoryObject,
  TriggerStory,
} from './trigger-story.ts';
