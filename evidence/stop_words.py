"""Function words of many languages: they are in nearly every question and carry no meaning there.

Question words, articles, pronouns, prepositions, conjunctions and auxiliary verbs. Nothing that a
person would search for by itself. Spelled as people write them; `stop_words` folds them.
"""

from functools import lru_cache
from typing import Final

from evidence.fold import fold

_LISTS: Final[dict[str, str]] = {
    "ar": """
من في على إلى عن مع هو هي هم هن هما نحن أنا أنت أنتم هذا هذه ذلك تلك هؤلاء التي الذي
الذين ما ماذا متى أين كيف كم لماذا هل أي أية لم لن لا ليس ليست أو ثم أن إن كان كانت
كانوا يكون تكون قد كل بعض بين عند بعد قبل حتى إذا لكن كما و ف ب ل منذ خلال حول دون غير
سوف لقد فيه فيها منه منها عليه عليها له لها لهم به بها أيضا مما اسم عندما حيث تم بواسطة
هناك
""",
    "bg": """
и в на с за от по до из при към е са беше бяха ще съм си сме сте аз ти той тя то ние вие
те го я му ми ни ви им кой коя кое кои какво какъв каква какви къде кога как защо колко
че да не но или ако като този тази това тези онзи един една едно също само още вече
""",
    "cs": """
a i o u v ve na z ze s se k ke do od po pro při za před nad pod mezi bez je jsou byl
byla bylo byli být bude budou jsem jsi jsme jste já ty on ona ono my vy oni si ho ji mu
jí jim kdo co jaký jaká jaké který která které kde kdy jak proč kolik kam že ale nebo
ani když pokud ten ta to ti tento tato toto také jen už ještě aby
""",
    "da": """
og i på af at en et den det de der som til med for fra om ved er var blev bliver været
være har havde kan kunne skal skulle vil ville må jeg du han hun vi I mig dig ham hende
os jer dem min din sin hans hendes vores deres hvem hvad hvor hvornår hvordan hvorfor
hvilken hvilket hvilke ikke men eller hvis så også kun denne dette disse end efter under
over
""",
    "de": """
der die das den dem des ein eine einen einem einer eines und oder aber wenn dass daß ob
als wie wo wann wer wen wem wessen was welche welcher welches welchen welchem warum
wieso weshalb woher wohin womit wofür worüber wodurch wieviel ich du er sie es wir ihr
mich dich sich uns euch mir dir ihm ihnen ihn mein meine meinen meinem meiner dein deine
sein seine seinen seinem seiner ihre ihren ihrem ihrer unser unsere unseren euer eure in
im an am auf aus bei beim mit nach von vom vor zu zum zur für durch über unter um gegen
ohne zwischen bis seit während ist sind war waren wird werden wurde wurden worden sei
gewesen bin bist hat habe haben hatte hatten hast kann können konnte konnten soll sollte
sollen muss müssen darf will wollte möchte nicht kein keine keinen auch noch nur schon
sehr so da dann dort hier diese dieser dieses diesen diesem jene jener man etwa denn
doch gibt gab viel viele wieviele
""",
    "el": """
ο η το οι τα τον την του της των τους τις στο στη στην στον στα στους στις σε από για με
και ή αλλά αν ότι πως που ποιος ποια ποιο ποιοι ποιες ποιον ποιου ποιας τι πού πότε πώς
γιατί πόσο πόσα πόσοι πόσες είναι ήταν είμαι είσαι είμαστε έχει έχουν είχε είχαν θα να
δεν μην εγώ εσύ αυτός αυτή αυτό αυτοί αυτά αυτές εμείς εσείς μου σου μας σας ένας μια
μία ένα έναν κατά μετά πριν προς χωρίς μεταξύ όταν όπως πολύ επίσης δύο κάθε όλα όλοι ως
""",
    "en": """
a an the and or but if so than then that this these those there here i me my mine myself
we us our ours you your yours he him his himself she her hers herself it its itself they
them their theirs themselves who whom whose what which when where why how is are was
were be been being am do does did doing done have has had having can could will would
shall should might must of in on at by for with about against between into through
during before after above below to from up down out off over under again once as until
while not no nor only own same too very just also any each both all some such other more
most few many much doesn didn isn aren wasn weren couldn wouldn shouldn hasn haven let s
t d ll re ve m upon per via whether
""",
    "es": """
el la los las lo un una unos unas de del al a en con por para sin sobre entre desde
hasta hacia según y e o u pero si que qué quién quiénes cuál cuáles cuándo cómo dónde
cuánto cuánta cuántos cuántas yo tú él ella ello nosotros vosotros ellos ellas usted
ustedes me te se nos os le les mi mis tu tus su sus nuestro nuestra es son era eran fue
fueron ser sido siendo está están estaba estaban estar he ha han había habían haber hay
hubo tiene tienen tenía puede pueden podía no ni también muy más ya este esta estos
estas ese esa esos esas eso esto aquel aquella como cuando donde quien cual porque
durante tras hizo hace
""",
    "fa": """
و در به از که این آن را با است بود شد برای تا بر یا هم اما اگر چه چرا کجا کی چگونه چند
کدام من تو او ما شما آنها می نمی های ها ای یک دو هر همه بین پس پیش نیز خود شده شود باشد
بودند هستند
""",
    "fi": """
ja tai mutta jos kun että joka jotka mikä mitkä kuka ketkä missä milloin miten miksi
mitä kenen minä sinä hän me te he se ne tämä nämä tuo nuo on ovat oli olivat olla ollut
ei en et emme eivät kuin myös vain jo niin ole minun sinun hänen meidän teidän heidän
joita josta jossa siitä siinä
""",
    "fr": """
le la les l un une des de d du au aux à en dans par pour sur sous avec sans entre vers
chez et ou mais donc or ni car si que qu qui quoi quel quelle quels quelles lequel
laquelle où quand comment pourquoi combien je j tu il elle on nous vous ils elles me m
te t se s lui leur leurs moi toi y ce c cet cette ces mon ma mes ton ta tes son sa ses
notre nos votre vos est sont était étaient être été suis es sommes êtes a ai as ont
avait avaient avoir eu fut furent sera seront peut peuvent ne n pas plus aussi très
comme dont après avant pendant depuis lors fait est-ce cela ça
""",
    "hi": """
का के की को में से पर ने और या है हैं था थे थी हो होता होती होते यह वह ये वे इस उस इन उन
क्या कौन किस किसने किसे किसके किसकी कब कहाँ कहां कैसे क्यों कितने कितनी कितना कौनसा जो
जिस जिसे कि भी ही तो नहीं न एक मैं हम तुम आप मेरा हमारा उनका उनके उनकी उसका उसके उसकी
अपने अपनी अपना लिए साथ तक द्वारा गया गई गए कर करता करते करने किया रहा रहे रही कुछ सब बाद
पहले जब तब
""",
    "hu": """
a az egy és vagy de ha hogy mint is nem ki kik mi mit mik hol mikor hogyan miért mennyi
hány melyik milyen én te ő ti ők ez ezek azok van vannak volt voltak lesz lett meg el
már csak még aki ami amely amikor ahol ben ban
""",
    "id": """
dan atau yang di ke dari pada untuk dengan oleh dalam ini itu adalah ialah akan telah
sudah belum tidak bukan apa siapa kapan mana dimana bagaimana mengapa kenapa berapa saya
aku kamu anda dia ia kami kita mereka sebagai seperti juga saja ada karena jika bila
maka lebih para sebuah
""",
    "it": """
il lo la i gli le l un uno una di del dello della dei degli delle a al allo alla ai agli
alle da dal dalla dai dalle in nel nella nei nelle con su sul sulla sui sulle per tra
fra e ed o ma se che chi cosa quale quali quando dove come perché quanto quanta quanti
quante io tu lui lei noi voi loro mi ti si ci vi ne mio mia miei mie tuo tua suo sua
suoi sue nostro è sono era erano essere stato stata ha ho hanno aveva avevano avere può
possono non né anche più molto questo questa questi queste quello quella quelli dopo
prima durante fu furono
""",
    "nl": """
de het een en of maar als dan dat die dit deze wie wat waar wanneer hoe waarom welke
welk hoeveel ik jij je u hij zij ze wij we jullie hen hun mij me hem haar ons mijn jouw
zijn uw onze in op aan bij met van voor door over onder tussen naar uit tot om te is was
waren ben bent geweest wordt worden werd werden heeft heb hebben had hadden kan kunnen
kon zal zullen zou moet niet geen ook nog er al zo
""",
    "no": """
og i på av at en et ei den det de der som til med for fra om ved er var ble blir vært
være har hadde kan kunne skal skulle vil ville må jeg du han hun vi dere meg deg ham
henne oss dem min din sin hans hennes vår deres hvem hva hvor når hvordan hvorfor
hvilken hvilket hvilke ikke men eller hvis så også bare denne dette disse enn etter
""",
    "pl": """
i a o u w we na z ze do od po dla przy za przed nad pod między bez jest są był była było
byli być będzie będą jestem ja ty on ona ono my wy oni one się go ją mu jej im ich mnie
mi ci kto co jaki jaka jakie który która które gdzie kiedy jak dlaczego ile że ale lub
albo ani gdy jeśli ten ta to te tego tej tym tych nie tak także tylko już jeszcze aby
""",
    "pt": """
o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela
para com sem sobre entre desde até e ou mas se que quem qual quais quando como onde
porque quanto quanta quantos quantas eu tu ele ela nós vós eles elas você vocês me te
lhe lhes meu minha teu tua seu sua seus suas nosso nossa é são era eram foi foram ser
sido está estão estava tem têm tinha há pode podem não nem também muito mais já este
esta estes estas esse essa isso isto aquele aquela
""",
    "ro": """
și si sau dar dacă că să de la în din pe cu pentru prin despre între până fără spre sub
peste a al ai ale un o unei unui unor cel cea cei cele este e sunt era erau fi fost am
are au avea aveau eu tu el ea noi voi ei ele mă te se ne vă îl îi le lui lor meu mea său
sa săi sale cine ce care cui când unde cum cât câtă câți câte nu nici mai foarte acest
această acești aceste acel acea ca după înainte timpul
""",
    "ru": """
и в во на с со к ко у о об от до по из за при для без под над между через про а но да
или либо если что чтобы как так же бы ли не ни я ты он она оно мы вы они меня тебя его
её ее нас вас их мне тебе ему ей нам вам им мой моя моё мои твой свой своя свои наш ваш
кто кого кому кем чего чему чем какой какая какое какие каким какую какого каком каких
который которая которое которые которого которой которых где куда откуда когда почему
зачем сколько быть был была было были будет есть это этот эта эти этого этой этом тот та
те того той тем то также тоже только уже ещё еще все всё всех очень можно после перед
время
""",
    "sv": """
och i på av att en ett den det de der som till med för från om vid är var blev blir
varit vara har hade kan kunde ska skulle vill ville måste jag du han hon vi ni mig dig
honom henne oss er dem min din sin hans hennes vår deras vem vad när hur varför vilken
vilket vilka inte men eller så också bara denna detta dessa än efter
""",
    "tr": """
ve veya ya da ile için gibi kadar göre ama fakat ancak eğer ki de mi mı mu mü ne kim
kime kimi kimin kimler nerede nereye nereden neyi neler zaman nasıl neden niçin niye kaç
hangi hangisi ben sen o biz siz onlar bana sana ona bize size onlara beni seni onu bizi
sizi benim senin onun bizim sizin onların bu şu bunlar şunlar bir her bazı tüm daha en
çok az değil var yok olan olarak olduğu oldu olur idi ise sonra önce arasında tarafından
""",
    "uk": """
і й та в у на з із зі до від по для при за під над між через про без а але чи або якщо
що щоб як так не ні я ти він вона воно ми ви вони мене тебе його її нас вас їх мені тобі
йому їй нам вам їм хто кого кому чого чому який яка яке які якого якої де куди коли
скільки бути був була було були буде є це цей ця ці того тієї також тільки вже ще
""",
    "vi": """
và hoặc nhưng nếu thì là của ở trong trên dưới với cho từ đến tại bởi vì về theo để các
những một này đó kia ấy tôi bạn anh chị nó họ chúng ta ai gì nào đâu khi bao giờ nhiêu
thế sao như mấy có không được bị đã đang sẽ cũng rất hơn cả mà ra vào lại người làm việc
cái con sau trước giữa nơi
""",
}

LANGUAGES: Final = tuple(_LISTS)


@lru_cache(maxsize=None)
def stop_words(language: str) -> frozenset[str]:
    """The folded function words of a language, by its two-letter code; none of an unknown one."""
    return frozenset(fold(_LISTS.get(language, "")).split())
