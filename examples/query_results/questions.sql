-- questions.sql - what people ask of results, of the file alone: no service, no Jizi.
--   sqlite3 -header -column python.db < examples/query_results/questions.sql
-- One study a file is taken for granted; where there are more, add: and study = (select study from studies where name = '...').

select '1. The best trial and its parameters' as question;
select trials.trial, objective, group_concat(params.name || '=' || params.value, ' ') as parameters
from trials join studies using (study) join params using (study, trial)
where objective is not null
group by trials.trial
order by iif(goal = 'maximize', -objective, objective), trials.trial limit 1;

select '2. Its learning curve' as question;
select step, value
from measurements join studies using (study)
where counts and measurements.metric = studies.metric and trial = (
  select trial from trials join studies using (study) where objective is not null
  order by iif(goal = 'maximize', -objective, objective), trial limit 1)
order by step;

select '3. What failed, and why' as question;
select trial, state, end_why from trials where state in ('Failed', 'Infeasible') order by trial;

select '4. What each parameter did: mean objective by value' as question;
select name, value, count(*) as trials, round(avg(objective), 4) as mean
from params join trials using (study, trial)
where objective is not null
group by name, value having count(*) > 1
order by name, value;

select '5. Where the time went' as question;
select state, count(*) as trials, round(sum(ended_us - started_us) / 1e6, 1) as seconds
from trials where ended_us is not null group by state order by state;

select '6. Trials that were started more than once' as question;
select trial, count(*) as attempts, max(start_step) as went_on_from from attempts group by trial having count(*) > 1;
